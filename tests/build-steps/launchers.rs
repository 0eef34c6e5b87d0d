//! Compilers started by others: caches, and programs that send compiles to other machines.

use crate::support;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::package::{Package, text};

const MANIFEST: &str = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\n";
const OPENMP: &str = "language = \"openmp\"\nsources = [\"kernels/*.c\"]\ntargets = [\"x86_64-pc-linux-gnu\", \"gfx90a\"]\n";
const HIP: &str = "language = \"hip\"\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a:xnack-\", \"gfx1100\"]\n\
    flags = [\"-nogpulib\", \"-nogpuinc\"]\n";
/// Compiled to machine code: an assembler behind each compile.
const MACHINE: &str = "language = \"hip\"\nsources = [\"own/*.hip\"]\ntargets = [\"gfx90a:xnack-\", \"gfx1100\"]\n\
    flags = [\"-nogpulib\", \"-nogpuinc\"]\nrdc = false\n";
const CUDA: &str = "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"sm_80\", \"sm_90\"]\n\
    flags = [\"-nogpulib\", \"-nogpuinc\"]\n";
const HOSTED: &str = "language = \"hip\"\nhost = true\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\"]\n\
    flags = [\"-nogpulib\", \"-nogpuinc\"]\nrdc = true\n";
const HOSTED_MACHINE: &str = "language = \"hip\"\nhost = true\nsources = [\"own/*.hip\"]\ntargets = [\"gfx90a\"]\n\
    flags = [\"-nogpulib\", \"-nogpuinc\"]\nrdc = false\n";
const HEADER: &str = "#define ONE 1\n#define __global__ __attribute__((global))\n\
    #define __device__ __attribute__((device))\n\
    #ifdef __HIP__\nstruct dim3 { unsigned x, y, z; };\nextern \"C\" {\n\
    int __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, void * = 0);\n\
    int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void *);\n\
    int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);\n}\n#endif\n";
const KERNEL: &str = "#include \"k.h\"\n__device__ int twice(int);\n\
    extern \"C\" __global__ void scale(int *x) { *x = twice(*x); }\n";
const HELPER: &str = "#include \"k.h\"\n__device__ int twice(int x) { return ONE + x; }\n";

/// What is built: the keys, and how many compiles that is. Without `OFFLOAD_TEST_ALL=1` each launcher gets a third of them.
const LANGUAGES: [(&str, usize); 6] = [
    (OPENMP, 3),
    (HIP, 4),
    (MACHINE, 8),
    (CUDA, 4),
    (HOSTED, 4),
    (HOSTED_MACHINE, 6),
];

/// A package with sources of every language.
fn package(keys: &str) -> Option<Package> {
    let package = Package::new("")?;
    package.put("kernels/k.h", HEADER);
    for extension in ["hip", "cu"] {
        package.put(&format!("kernels/k.{extension}"), KERNEL);
        package.put(&format!("kernels/helper.{extension}"), HELPER);
    }
    for name in ["one", "two"] {
        let kernel = KERNEL.replace("twice(int);", "twice(int x) { return ONE + x; }");
        let kernel = kernel.replace("\"k.h\"", "\"../kernels/k.h\"");
        package.put(&format!("own/{name}.hip"), &kernel.replace("scale", name));
    }
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    Some(package)
}

/// The build script with NVIDIA's tools, where there are any.
fn script(package: &Package) -> Command {
    let mut script = package.script();
    if let Some(ptxas) = support::tool("cuda", &["ptxas"]) {
        script.env("CUDA_PATH", ptxas.ancestors().nth(2).unwrap());
    }
    script
}

fn skips(keys: &str) -> bool {
    keys == CUDA && support::tool("cuda", &["ptxas"]).is_none()
}

/// Builds from nothing; gives what the program gets, and how many compiles there were.
fn cold(package: &Package, script: &mut Command) -> (Vec<Vec<u8>>, usize) {
    let _ = fs::remove_dir_all(package.at("target"));
    let _ = fs::remove_file(package.at("starts"));
    text(&script.output().unwrap());
    (results(package), compiles(package))
}

/// The static library and the container of images, as far as there are any.
fn results(package: &Package) -> Vec<Vec<u8>> {
    let is_result = |path: &&String| {
        path.ends_with("_offload.a") || path.ends_with("/images") || path.ends_with("/image")
    };
    let files = package.files();
    let files = files.iter().filter(is_result);
    files.map(|path| fs::read(path).unwrap()).collect()
}

/// How often the compiler preprocessed or compiled a source.
fn compiles(package: &Package) -> usize {
    let starts = fs::read_to_string(package.at("starts")).unwrap_or_default();
    // One asks only which commands there would be.
    let is_question = |line: &str| line.contains(" -### ");
    let is_compile =
        |line: &&str| (line.contains(" -c ") || line.contains(" -E ")) && !is_question(line);
    starts.lines().filter(is_compile).count()
}

/// A cache of its own for one test.
fn with_ccache(package: &Package, script: &mut Command) {
    fs::write(package.at("ccache.conf"), "").unwrap();
    script
        .env("OFFLOAD_LAUNCHER", "ccache")
        .env("CCACHE_CONFIGPATH", package.at("ccache.conf"))
        .env("CCACHE_DIR", package.at("cache"));
}

/// What the cache counted under that name.
fn counted(package: &Package, name: &str) -> usize {
    let mut command = Command::new("ccache");
    command.arg("--print-stats");
    with_ccache(package, &mut command);
    let stats = support::run(&mut command);
    let row = stats
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}\t")));
    row.unwrap().parse().unwrap()
}

#[test]
fn takes_every_compile_of_a_second_cold_build_from_ccache() {
    for (keys, count) in support::share(LANGUAGES, 2, 3) {
        let Some(package) = package(keys) else {
            return;
        };
        if support::tool("ccache", &["ccache"]).is_none() || skips(keys) {
            return;
        }
        let (plain, started) = cold(&package, &mut script(&package));
        assert_eq!(started, count, "{keys}");
        let mut script = script(&package);
        with_ccache(&package, &mut script);
        let (first, _) = cold(&package, &mut script);
        assert_eq!(counted(&package, "cache_miss"), count, "{keys}");
        let (second, started) = cold(&package, &mut script);
        assert_eq!(started, 0, "{keys}");
        assert_eq!(counted(&package, "direct_cache_hit"), count, "{keys}");
        assert!(!plain.is_empty());
        assert!(plain == first && plain == second, "{keys}");

        // Of the dependencies that came out of the cache, each is watched.
        package.put("kernels/k.h", &HEADER.replace("ONE 1", "ONE 2"));
        let told = text(&script.output().unwrap());
        assert!(results(&package) != plain, "{keys}");
        // Of options that the cache adds or moves, clang uses each.
        assert!(!told.contains("unused"), "{told}");
        // Nothing that was built is built again without the launcher.
        fs::remove_file(package.at("starts")).unwrap();
        text(&script.env("OFFLOAD_LAUNCHER", "none").output().unwrap());
        assert_eq!(package.starts(), 0, "{keys}");
    }
}

/// A compiler's output is then the cache's own file.
#[test]
fn edits_no_file_of_a_cache_that_gives_links() {
    for keys in [OPENMP, MACHINE] {
        let Some(package) = package(keys) else {
            return;
        };
        if support::tool("ccache", &["ccache"]).is_none() || skips(keys) {
            return;
        }
        let (plain, _) = cold(&package, &mut script(&package));
        let mut script = script(&package);
        with_ccache(&package, &mut script);
        script.env("CCACHE_HARDLINK", "1");
        let (first, compiled) = cold(&package, &mut script);
        assert!(compiled > 0 && plain == first, "{keys}");
        let (second, compiled) = cold(&package, &mut script);
        assert_eq!(compiled, 0, "{keys}");
        assert!(plain == second, "{keys}");
    }
}

/// The server of sccache on a port of its own, gone with this value.
struct Sccache {
    server: Child,
    program: PathBuf,
    variables: [(&'static str, String); 4],
}

impl Sccache {
    fn start(package: &Package, program: &Path) -> Self {
        let variables = |port: u16| {
            [
                ("SCCACHE_DIR", package.at("cache").display().to_string()),
                ("SCCACHE_SERVER_PORT", port.to_string()),
                // Ends it where the test could not.
                ("SCCACHE_IDLE_TIMEOUT", "60".to_owned()),
                // Of another sccache's configuration nothing is read.
                (
                    "SCCACHE_CONF",
                    package.at("sccache.conf").display().to_string(),
                ),
            ]
        };
        package.put("sccache.conf", "");
        let (server, port) = serve(|port| {
            let mut command = Command::new(program);
            command
                .envs(variables(port))
                .env("SCCACHE_START_SERVER", "1")
                .env("SCCACHE_NO_DAEMON", "1")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.spawn().unwrap()
        });
        Self {
            server,
            program: program.to_owned(),
            variables: variables(port),
        }
    }

    fn stats(&self) -> String {
        let mut command = Command::new(&self.program);
        support::run(command.arg("--show-stats").envs(self.variables.clone()))
    }
}

impl Drop for Sccache {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Starts a server on a port that is free. Another process may take the port first: then the server ends, and gets another.
fn serve(mut start: impl FnMut(u16) -> Child) -> (Child, u16) {
    for _ in 0..5 {
        let port = free_port();
        let mut server = start(port);
        if listens(port, &mut server) {
            return (server, port);
        }
    }
    panic!("no server listens");
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Waits until a server listens there; `false` if it ends.
fn listens(port: u16, server: &mut Child) -> bool {
    for _ in 0..1000 {
        let answers = std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        // What answers is another process if this server ends now.
        let pause = if answers { 100 } else { 10 };
        std::thread::sleep(std::time::Duration::from_millis(pause));
        if server.try_wait().unwrap().is_some() {
            return false;
        }
        if answers {
            return true;
        }
    }
    let _ = server.kill();
    panic!("nothing listens at {port}");
}

#[test]
fn takes_every_compile_of_a_second_cold_build_from_sccache() {
    let Some(program) = support::tool("sccache", &["sccache"]) else {
        return;
    };
    let version = support::run(Command::new(&program).arg("--version"));
    // Debian 12's, which knows no `-x hip` and no `-x cuda`, and starts the compiler.
    let is_old = version.starts_with("sccache 0.4.");
    for (keys, count) in support::share(LANGUAGES, 0, 3) {
        let Some(package) = package(keys) else {
            return;
        };
        if skips(keys) {
            return;
        }
        let (plain, _) = cold(&package, &mut script(&package));
        let server = Sccache::start(&package, &program);
        let mut script = script(&package);
        script
            .env("RUSTC_WRAPPER", &program)
            .envs(server.variables.clone());
        let (first, _) = cold(&package, &mut script);
        let (second, _) = cold(&package, &mut script);
        let told = text(&script.output().unwrap());
        assert!(plain == first && plain == second, "{keys}");
        assert!(!told.contains("without the launcher"), "{told}");
        let stats = server.stats();
        let row = |name: &str| {
            let rest = stats.lines().find_map(|line| line.strip_prefix(name));
            rest.unwrap().trim().parse::<usize>().unwrap()
        };
        // What it does not know: the option of clang 19 that names units of the host, and that by which CUDA's sources do
        // without a toolkit.
        let hits = match keys {
            OPENMP => count,
            _ if is_old => 0,
            HOSTED => count - 2,
            // Nor the one that has a device's pass call kernels as the host does.
            HOSTED_MACHINE => count - 4,
            CUDA => 0,
            _ => count,
        };
        assert_eq!(row("Cache hits  "), hits, "{keys}{stats}");
        assert_eq!(row("Cache misses  "), hits, "{keys}{stats}");
        assert_eq!(row("Compile requests  "), 2 * count, "{keys}{stats}");
    }
}

#[test]
fn finds_in_ccache_what_another_checkout_made() {
    if support::tool("ccache", &["ccache"]).is_none() {
        return;
    }
    let languages = [(HIP, 4), (MACHINE, 8), (CUDA, 4), (OPENMP, 0)];
    for (keys, count) in support::share(languages, 1, 2) {
        let (Some(one), Some(two)) = (package(keys), package(keys)) else {
            return;
        };
        if skips(keys) {
            return;
        }
        let build = |package: &Package, compiler: &Package| {
            let mut script = script(package);
            // Kept in one place, where both folders are below the base.
            with_ccache(&one, &mut script);
            script
                .env("CCACHE_BASEDIR", std::env::temp_dir())
                .env("OFFLOAD_COMPILER", compiler.at("llvm/bin/clang"));
            cold(package, &mut script).0
        };
        let first = build(&one, &one);
        let second = build(&two, &one);
        assert_eq!(counted(&one, "direct_cache_hit"), count, "{keys}");
        // The names of OpenMP's kernels are those of files.
        assert_eq!(first == second, keys != OPENMP, "{keys}");
    }
}

#[test]
fn caches_kernels_that_include_the_toolkit() {
    let (Some(clang), Some(ptxas)) = (
        support::tool("llvm22", &["clang"]),
        support::tool("cuda", &["ptxas"]),
    ) else {
        return;
    };
    if support::tool("ccache", &["ccache"]).is_none() {
        return;
    }
    let keys =
        "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"sm_80\", \"sm_90\"]\n";
    let Some(package) = package(keys) else {
        return;
    };
    let cuda = ptxas.ancestors().nth(2).unwrap();
    if !support::has_cuda_headers(cuda) {
        return;
    }
    fs::remove_file(package.at("kernels/helper.cu")).unwrap();
    package.put(
        "kernels/k.cu",
        "#include <cuda_runtime.h>\nextern \"C\" __global__ void root(float *x) { x[threadIdx.x] = sqrtf(x[0]); }\n",
    );
    let mut script = script(&package);
    script.env("OFFLOAD_COMPILER", clang);
    let (plain, _) = cold(&package, &mut script);
    with_ccache(&package, &mut script);
    for _ in 0..2 {
        assert!(cold(&package, &mut script).0 == plain);
    }
    assert_eq!(counted(&package, "direct_cache_hit"), 2);
    // The toolkit's headers are among what the images depend on.
    let told = text(&script.output().unwrap());
    let header = cuda.join("include/vector_types.h");
    let watched = format!("rerun-if-changed={}\n", header.display());
    assert!(told.contains(&watched), "{told}");
}

#[test]
fn lets_no_cache_send_compiles_elsewhere() {
    let Some(package) = package(OPENMP) else {
        return;
    };
    if support::tool("ccache", &["ccache"]).is_none() {
        return;
    }
    let mut script = script(&package);
    with_ccache(&package, &mut script);
    // What would be started in front of the compiler, by variable and by configuration.
    fs::write(package.at("ccache.conf"), "prefix_command = /bin/false\n").unwrap();
    cold(&package, script.env("CCACHE_PREFIX", "/bin/false"));
    let told = text(&script.output().unwrap());
    assert!(!told.contains("without the launcher"), "{told}");
}

/// A server of distcc on a port of its own, gone with this value; its log is a file of the package.
struct Distccd {
    server: Child,
    port: u16,
    log: PathBuf,
}

impl Distccd {
    fn start(package: &Package) -> Self {
        let log = |port: u16| package.at(&format!("distccd-{port}.log"));
        let (server, port) = serve(|port| {
            let mut command = Command::new("distccd");
            command
                .args([
                    "--no-detach",
                    "--daemon",
                    "--listen=127.0.0.1",
                    "--allow=127.0.0.1",
                ])
                .args([
                    "--jobs=2",
                    "--log-stderr",
                    "--log-level=info",
                    "--enable-tcp-insecure",
                ])
                // Root becomes this; others stay who they are.
                .args(["--user=nobody", "--lifetime=300", &format!("--port={port}")])
                .env("PATH", "/usr/bin:/bin")
                .stdin(Stdio::null())
                .stderr(fs::File::create(log(port)).unwrap());
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            command.spawn().unwrap()
        });
        Self {
            server,
            port,
            log: log(port),
        }
    }

    fn compiled(&self) -> usize {
        let log = fs::read_to_string(&self.log).unwrap();
        log.matches("COMPILE_OK").count()
    }
}

impl Drop for Distccd {
    fn drop(&mut self) {
        // Its workers are of its group.
        let group = format!("-{}", self.server.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.server.wait();
    }
}

/// Lets everybody read the package and count starts: a server is somebody else.
fn open_to_all(package: &Package) {
    let permit = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    permit(package.folder.root(), 0o755);
    fs::create_dir(package.at("distcc")).unwrap();
    fs::write(package.at("starts"), "").unwrap();
    permit(&package.at("starts"), 0o666);
}

#[test]
fn compiles_hip_and_cuda_on_other_machines_of_distcc() {
    let languages = [
        (HIP, 4),
        (MACHINE, 4),
        (CUDA, 4),
        (HOSTED, 2),
        (HOSTED_MACHINE, 2),
        (OPENMP, 0),
    ];
    for (keys, count) in support::share(languages, 2, 3) {
        let Some(package) = package(keys) else {
            return;
        };
        if support::tool("distcc", &["distccd"]).is_none() || skips(keys) {
            return;
        }
        let (plain, _) = cold(&package, &mut script(&package));
        fs::remove_dir_all(package.at("target")).unwrap();
        open_to_all(&package);
        let server = Distccd::start(&package);
        let mut script = script(&package);
        script
            .env("OFFLOAD_LAUNCHER", "distcc")
            .env("DISTCC_DIR", package.at("distcc"))
            .env("DISTCC_HOSTS", format!("127.0.0.1:{}", server.port))
            .env("DISTCC_FALLBACK", "0");
        let told = text(&script.output().unwrap());
        assert!(!told.contains("without the launcher"), "{told}");
        assert_eq!(server.compiled(), count, "{keys}");
        drop(server);
        assert!(results(&package) == plain, "{keys}");

        // A header changes; there is no server any more.
        if keys != OPENMP {
            package.put("kernels/k.h", &HEADER.replace("ONE 1", "ONE 2"));
            let told = text(&script.output().unwrap());
            assert!(told.contains("compiled without the launcher: `"), "{told}");
            assert!(results(&package) != plain);
        }
    }
}

#[test]
fn divides_compiles_between_two_machines_of_distcc() {
    let Some(package) = package(HIP) else {
        return;
    };
    if support::tool("distcc", &["distccd"]).is_none() {
        return;
    }
    let (plain, _) = cold(&package, &mut script(&package));
    fs::remove_dir_all(package.at("target")).unwrap();
    open_to_all(&package);
    // A compile on a server waits for another one, so that both servers are needed.
    let shim = fs::read_to_string(package.at("llvm/bin/clang")).unwrap();
    let wait = format!(
        "case \"$*\" in *.ii\\ *) : > {0}/$$; for i in $(seq 100); do \
         [ $(ls {0} | wc -l) -ge 2 ] && break; sleep 0.1; done;; esac\nexec ",
        package.at("waiting").display()
    );
    package.put("llvm/bin/clang", &shim.replace("exec ", &wait));
    fs::create_dir(package.at("waiting")).unwrap();
    fs::set_permissions(package.at("waiting"), fs::Permissions::from_mode(0o777)).unwrap();
    let servers = [Distccd::start(&package), Distccd::start(&package)];
    let hosts = servers
        .each_ref()
        .map(|server| format!("127.0.0.1:{}/1", server.port));
    let mut script = script(&package);
    script
        .env("OFFLOAD_LAUNCHER", "distcc")
        .env("DISTCC_DIR", package.at("distcc"))
        .env("DISTCC_HOSTS", hosts.join(" "))
        .env("DISTCC_FALLBACK", "0");
    let told = text(&script.output().unwrap());
    assert!(!told.contains("without the launcher"), "{told}");
    let counts = servers.each_ref().map(Distccd::compiled);
    assert_eq!(counts.iter().sum::<usize>(), 4, "{counts:?}");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert!(results(&package) == plain);
}

/// A server of Redis on a port of its own, gone with this value.
struct Redis(Child, u16);

impl Redis {
    fn start(program: &Path) -> Self {
        let (server, port) = serve(|port| {
            let mut command = Command::new(program);
            command
                .args(["--bind", "127.0.0.1", "--save", "", "--port"])
                .arg(port.to_string())
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            command.spawn().unwrap()
        });
        Self(server, port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn compiles_nothing_that_another_machine_left_in_redis() {
    let Some(redis) = support::tool("redis", &["redis-server"]) else {
        return;
    };
    for (keys, count) in support::share(LANGUAGES, 1, 3) {
        let Some(package) = package(keys) else {
            return;
        };
        if support::tool("ccache", &["ccache"]).is_none() || skips(keys) {
            return;
        }
        let server = Redis::start(&redis);
        let build = || {
            // Nothing in a cache of its own.
            let _ = fs::remove_dir_all(package.at("cache"));
            let mut script = script(&package);
            with_ccache(&package, &mut script);
            let store = format!("redis://127.0.0.1:{}", server.1);
            cold(&package, script.env("CCACHE_REMOTE_STORAGE", store))
        };
        let (first, started) = build();
        assert!(started >= count, "{keys}");
        let (second, started) = build();
        assert_eq!(started, 0, "{keys}");
        // A manifest and a result for each.
        assert_eq!(counted(&package, "remote_storage_hit"), count, "{keys}");
        assert!(first == second, "{keys}");
    }
}

/// A program that stands in for a launcher: a shell script.
fn stand_in(package: &Package, name: &str, lines: &str) {
    package.put(name, &format!("#!/bin/sh\n{lines}\n"));
}

#[test]
fn takes_rustcs_wrapper_where_it_is_one_for_c() {
    let Some(package) = package(HIP) else {
        return;
    };
    let count = "echo \"$1\" >> \"${0%/*}/../launches\"\nexec \"$@\"";
    stand_in(&package, "bin/sccache", count);
    stand_in(&package, "bin/wrapper", count);
    let launches = |package: &Package| {
        let log = fs::read_to_string(package.at("launches")).unwrap_or_default();
        let _ = fs::remove_file(package.at("launches"));
        log.lines().count()
    };
    let path = format!("{}:/usr/bin:/bin", package.at("bin").display());
    let build = |variables: &[(&str, &str)]| {
        let mut script = script(&package);
        script.env("PATH", &path).envs(variables.iter().copied());
        let _ = cold(&package, &mut script);
        launches(&package)
    };
    // Compiles, and nothing else: neither the device links nor the question for the version.
    assert_eq!(build(&[("RUSTC_WRAPPER", "sccache")]), 4);
    let whole = package.at("bin/sccache").display().to_string();
    assert_eq!(build(&[("RUSTC_WRAPPER", &whole)]), 4);
    assert_eq!(build(&[("RUSTC_WRAPPER", "wrapper")]), 0);
    let off = [("RUSTC_WRAPPER", "sccache"), ("OFFLOAD_LAUNCHER", "none")];
    assert_eq!(build(&off), 0);
    assert_eq!(build(&[("OFFLOAD_LAUNCHER", "wrapper")]), 4);
    // What the package says; nothing is something, too.
    let declare = |launcher: &str| {
        package.put(
            "Cargo.toml",
            &format!("{MANIFEST}{HIP}launcher = {launcher:?}\n"),
        );
    };
    declare("bin/wrapper");
    assert_eq!(build(&[("PATH", "/usr/bin:/bin")]), 4);
    declare("");
    assert_eq!(build(&[("RUSTC_WRAPPER", "sccache")]), 0);
    declare("bin/ccache -v");
    assert_eq!(
        package.fails(&mut script(&package)),
        "Cargo.toml:9:1: `launcher`: `bin/ccache -v` not found (searched: bin/ccache) [OFF605]\n\
         hint: install it (Debian: `apt install ccache`), or set `launcher = \"none\"` or OFFLOAD_LAUNCHER=none to \
         compile without one"
    );
}

#[test]
fn plans_what_a_launcher_starts() {
    let Some(package) = package(OPENMP) else {
        return;
    };
    stand_in(&package, "bin/wrap", "exec \"$@\"");
    let mut script = script(&package);
    script
        .env("OFFLOAD_LAUNCHER", "bin/wrap -x")
        .env("OFFLOAD_DRY_RUN", "1");
    let plan = String::from_utf8(script.output().unwrap().stderr).unwrap();
    let plan = plan.replace(&format!("{}/", package.folder.root().display()), "");
    let start = "CCACHE_PREFIX= bin/wrap -x llvm/bin/clang --no-default-config -fopenmp ";
    let launched: Vec<&str> = plan
        .lines()
        .filter(|line| line.starts_with(start))
        .collect();
    assert_eq!(launched.len(), 3, "{plan}");
    for line in launched {
        assert!(
            line.contains(" -frandom-seed=") && line.contains(" -c "),
            "{line}"
        );
        let dependencies = " -MD -MF target/build/pack-0123/out/offload/kernels/";
        assert!(line.contains(dependencies), "{line}");
    }
    assert_eq!(plan.matches("bin/wrap").count(), 3, "{plan}");
}

#[test]
fn plans_why_a_compile_is_not_sent() {
    let numbers = "names of OpenMP's kernels contain the numbers of their file";
    let name = "the object contains the name of its source";
    let images = "the compiler reads images, and no cache knows that";
    let images_of_sources = format!("{HOSTED_MACHINE}images = \"source\"\n");
    let cases = [
        (HIP, "distcc", 4, None),
        (OPENMP, "icecc", 0, Some((numbers, 3))),
        (HOSTED, "distcc", 2, Some((name, 2))),
        (HOSTED_MACHINE, "ccache", 6, None),
        // Two compiles and two assemblers.
        (&images_of_sources, "ccache", 4, Some((images, 2))),
    ];
    for (keys, launcher, launched, reason) in cases {
        let Some(package) = package(keys) else {
            return;
        };
        stand_in(&package, &format!("bin/{launcher}"), "exec \"$@\"");
        let mut script = script(&package);
        script
            .env("OFFLOAD_LAUNCHER", format!("bin/{launcher}"))
            .env("OFFLOAD_DRY_RUN", "1");
        let plan = String::from_utf8(script.output().unwrap().stderr).unwrap();
        let starts = format!("/bin/{launcher} ");
        assert_eq!(plan.matches(&starts).count(), launched, "{keys}{plan}");
        let said = plan.matches("# without the launcher: ").count();
        assert_eq!(said, reason.map_or(0, |(_, count)| count), "{keys}{plan}");
        if let Some((reason, count)) = reason {
            assert_eq!(plan.matches(reason).count(), count, "{keys}{plan}");
        }
    }
}

#[test]
fn says_what_other_machines_of_sccache_need() {
    let Some(package) = package(HIP) else {
        return;
    };
    // What sccache 0.16.0 says of a compiler that failed on another machine.
    let lines = "echo 'sccache: Job failed on server 10.77.0.2:10501:' >&2\nexit 254";
    stand_in(&package, "bin/sccache", lines);
    let mut script = script(&package);
    let told = text(
        &script
            .env("OFFLOAD_LAUNCHER", "bin/sccache")
            .output()
            .unwrap(),
    );
    let hint = "hint: other machines of sccache compile device code only with `rewrite_includes_only = true` \
                under `[dist]` of its configuration\n";
    assert_eq!(told.matches(hint).count(), 4, "{told}");
    stand_in(&package, "bin/sccache", "exit 254");
    let _ = fs::remove_dir_all(package.at("target"));
    let told = text(&script.output().unwrap());
    assert!(
        told.contains("without the launcher") && !told.contains("hint: "),
        "{told}"
    );
}

#[test]
fn compiles_without_a_launcher_that_gives_what_cannot_be_right() {
    for (keys, count) in support::share(LANGUAGES, 0, 3) {
        let Some(package) = package(keys) else {
            return;
        };
        if skips(keys) {
            return;
        }
        let (plain, _) = cold(&package, &mut script(&package));
        let output = "for last; do :; done\n";
        let cases = [
            ("fails", "exit 3".to_owned()),
            ("no output", "exit 0".to_owned()),
            // The compiler's work, less what it says about the files that it read.
            (
                "no dependencies",
                format!("\"$@\" || exit 1\n{output}rm -f \"${{last%.part}}.d\""),
            ),
            // What a compiler makes of text that it calls preprocessed.
            (
                "host code",
                format!("{output}\"$@\" || exit 1\nprintf '\\177ELF' > \"$last\""),
            ),
            (
                "host code of an assembler",
                format!(
                    "{output}\"$@\" || exit 1\ncase $last in *.part) cp /bin/true \"$last\";; esac"
                ),
            ),
        ];
        for (name, lines) in cases {
            // Host objects are objects.
            if name.starts_with("host code") && [OPENMP, HOSTED, HOSTED_MACHINE].contains(&keys) {
                continue;
            }
            stand_in(&package, "bin/wrap", &lines);
            let mut script = script(&package);
            script.env("OFFLOAD_LAUNCHER", "bin/wrap");
            let (results, _) = cold(&package, &mut script);
            assert!(results == plain, "{name}: {keys}");
            let told = text(&script.output().unwrap());
            let warning = "compiled without the launcher: ";
            let tasks = match keys {
                MACHINE => count / 2,
                HOSTED_MACHINE => count - 2,
                _ => count,
            };
            assert_eq!(told.matches(warning).count(), tasks, "{name}: {keys}{told}");
        }
    }
}

#[test]
fn takes_no_kernels_of_another_file_from_a_cache() {
    let Some(package) = package(OPENMP) else {
        return;
    };
    if support::tool("ccache", &["ccache"]).is_none() {
        return;
    }
    // A kernel in the source and one in a header: each is named by its file.
    let header =
        "int both(int x) {\n#pragma omp target map(tofrom : x)\n  x += 2;\n  return x;\n}\n";
    let source = fs::read_to_string(package.at("kernels/k.c")).unwrap() + "#include \"both.h\"\n";
    package.put("kernels/k.c", &source);
    package.put("kernels/both.h", header);
    let mut script = script(&package);
    with_ccache(&package, &mut script);
    cold(&package, &mut script);
    let first = named(&package);
    assert_eq!(first.len(), 2, "{first:?}");
    for name in ["kernels/k.c", "kernels/both.h"] {
        let before = named(&package);
        package.replace(name);
        // One of three is made again: it comes out of the cache, or from the compiler.
        fs::remove_dir_all(package.at("target/build/pack-0123/out/offload/kernels/host")).unwrap();
        text(&script.output().unwrap());
        let names = named(&package);
        assert_eq!(names.len(), 2, "{name}: {names:?}");
        assert!(names != before, "{name}: {names:?}");
        // All three.
        cold(&package, &mut script);
        assert_eq!(named(&package), names, "{name}");
    }
}

/// The numbers of files in names of kernels, of all objects that were made.
fn named(package: &Package) -> std::collections::BTreeSet<String> {
    let files = package.files();
    let objects = files
        .iter()
        .filter(|path| path.ends_with(".o") || path.ends_with(".bc"));
    let mut found = std::collections::BTreeSet::new();
    for path in objects {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        let names = text.split("__omp_offloading_").skip(1);
        let names = names.map(|name| name.split('_').take(2).collect::<Vec<_>>().join("_"));
        found.extend(names.filter(|name| name.contains('_')));
    }
    found
}
