//! Processes in which a stand-in is the library of an API.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

use offload_device::gpu::{Api, Device, Module, Stream};

use crate::gpu_driver;

/// The stand-in of the running process.
pub(crate) struct StandIn {
    pub(crate) api: Api,
    record: PathBuf,
    fail: PathBuf,
}

/// Bytes of an image that the stand-in and the loader accept.
pub(crate) const HIP_IMAGE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__ for the stand-in";
pub(crate) const CUDA_IMAGE: &[u8] = b"\x50\xed\x55\xba for the stand-in, which looks at byte 32";

/// Signatures of the kernels in Rust that the stand-in's modules have.
const SIGNATURES: [&str; 6] = [
    "saxpy=ABI 1: &Item<_, 3>, f32, &[f32], Global<f32>; threads = 256; shared = 0",
    "scalars=ABI 1: &Item<_, 3>, u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, f32, f64; shared = 0",
    "mixed=ABI 1: &Item<_, 3>, u8, &[u8], u16, Global<16 bytes of alignment 8>, u8, f64, &[12 bytes of alignment 4], u8; shared = 0",
    "nothing=ABI 1: &Item<_, 3>; shared = 2048",
    "large=ABI 1: &Item<_, 3>; shared = 65536",
    "line=ABI 1: &Item<_, 1>; shared = 0",
];

/// Runs a test with the stand-in of each API, in a process of its own. `name` is the test's, with its modules.
pub(crate) fn with_stand_ins(name: &str, test: impl Fn(&StandIn)) {
    if let Some(api) = env::var_os("GPU_TEST_API") {
        let api = if api == "HIP" { Api::Hip } else { Api::Cuda };
        let [record, fail] =
            ["GPU_RECORD", "GPU_FAIL"].map(|name| env::var_os(name).unwrap().into());
        let stand_in = StandIn { api, record, fail };
        return test(&stand_in);
    }
    for &api in Api::ALL {
        let Some(library) = library(api) else {
            continue;
        };
        let folder = folder().join(format!("{name}-{api}").replace(':', "-"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let mut child = child(name);
        child
            .env("GPU_TEST_API", api.to_string())
            .env("GPU_SIGNATURES", SIGNATURES.join("\n"))
            .env("GPU_RECORD", folder.join("record"))
            .env("GPU_FAIL", folder.join("fail"))
            .env(variable(api), library);
        check(api, &mut child);
    }
}

/// Runs a test in a process with a variable: the path of an API's library.
pub(crate) fn with_library(name: &str, api: Api, path: &str, test: impl Fn()) {
    if env::var_os("GPU_TEST_LIBRARY").is_some_and(|library| library == *path) {
        return test();
    }
    if env::var_os("GPU_TEST_LIBRARY").is_none() {
        let mut child = child(name);
        child.env("GPU_TEST_LIBRARY", path).env(variable(api), path);
        check(api, &mut child);
    }
}

/// Returns a stand-in for CUDA's driver without one of its functions.
pub(crate) fn cuda_without(function: &str) -> Option<PathBuf> {
    let whole = library(Api::Cuda)?;
    let cuda = env::var_os("CUDA_PATH").unwrap_or_else(|| "/usr/local/cuda".into());
    let part = whole.with_file_name(format!("libcuda-without-{function}.so"));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"])
        .arg(&part)
        .arg(format!("-D{function}=another_function"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/support/gpu_driver.c"))
        .arg("-I")
        .arg(Path::new(&cuda).join("include"));
    assert!(cc.status().unwrap().success());
    Some(part)
}

fn child(name: &str) -> Command {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    child
}

fn check(api: Api, child: &mut Command) {
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{api}:\n{text}{errors}");
    assert!(text.contains("1 passed"), "{api}: no such test:\n{text}");
}

fn variable(api: Api) -> String {
    format!("OFFLOAD_DEVICE_{}", api.to_string().to_uppercase())
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Returns the stand-in, compiled once in this process.
fn library(api: Api) -> Option<PathBuf> {
    static LIBRARIES: OnceLock<[Option<PathBuf>; 2]> = OnceLock::new();
    let all = LIBRARIES.get_or_init(|| ["amdhip", "cuda"].map(gpu_driver::build));
    all[usize::from(api == Api::Cuda)].clone()
}

impl StandIn {
    /// Makes a function return an error code from now on.
    pub(crate) fn fail(&self, function: &str, code: i32) {
        fs::write(&self.fail, format!("{function} {code}")).unwrap();
    }

    pub(crate) fn fail_nothing(&self) {
        fs::write(&self.fail, "").unwrap();
    }

    /// Returns the calls since the last time, without those that make a GPU current.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.record).unwrap_or_default();
        fs::write(&self.record, "").unwrap();
        let lines = text.lines().map(|line| line.trim_end().to_owned());
        lines
            .filter(|line| {
                !line.starts_with("hipSetDevice") && !line.starts_with("cuCtxSetCurrent")
            })
            .collect()
    }

    /// Returns the arguments of the only launch since the last time, with the line before them.
    pub(crate) fn launch(&self) -> (String, Vec<u8>) {
        let name = self.name("hipModuleLaunchKernel ", "cuLaunchKernel ");
        let calls = self.calls();
        let mut launches = calls.iter().filter_map(|line| line.strip_prefix(name));
        let line = launches
            .next()
            .unwrap_or_else(|| panic!("no launch: {calls:?}"));
        assert_eq!(launches.next(), None, "one launch");
        let words: Vec<&str> = line.split(' ').collect();
        let hex = words.get(5).copied().unwrap_or_default();
        let bytes = (0..hex.len()).step_by(2);
        let bytes = bytes.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        (words[..5.min(words.len())].join(" "), bytes.collect())
    }

    pub(crate) fn name(&self, hip: &'static str, cuda: &'static str) -> &'static str {
        match self.api {
            Api::Hip => hip,
            _ => cuda,
        }
    }

    pub(crate) fn image(&self) -> &'static [u8] {
        match self.api {
            Api::Hip => HIP_IMAGE,
            _ => CUDA_IMAGE,
        }
    }

    pub(crate) fn stream(&self) -> Stream {
        Stream::new(&Device::new(self.api, 0).unwrap()).unwrap()
    }

    /// Returns a stream and a module; forgets the calls that made them.
    pub(crate) fn module(&self) -> (Stream, Module) {
        let stream = self.stream();
        // SAFETY: the stand-in does not read the image.
        let module = unsafe { Module::load(&stream, self.image()) }.unwrap();
        self.calls();
        (stream, module)
    }
}
