//! Options of the offload wrapper.

use std::ffi::OsString;
use std::path::PathBuf;

use offload_formats::names::{LlvmRelease, OffloadKind, Triple};

use crate::llvm_tool::{LlvmToolError, installation};
use crate::options::llvm::{Row, Table, Takes, Value};

/// Meaning of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrapperOption {
    Kind,
    Output,
    Triple,
    Relocatable,
    Llvm,
}

/// Options of `llvm-offload-wrapper` 22.1, of LLVM's main branch, and ours.
#[rustfmt::skip]
pub(super) const TABLE: Table<WrapperOption> = Table {
    rows: &[
        Row::new(WrapperOption::Kind, "kind", Takes::Text("value"), "Kind of the images: openmp, cuda, hip or sycl"),
        Row::new(WrapperOption::Output, "o", Takes::Text("file"), "Output: an object (.o, .obj), C (.c), or else LLVM IR"),
        Row::new(WrapperOption::Triple, "triple", Takes::Text("string"), "Triple of the host; default: this machine"),
        Row::new(WrapperOption::Relocatable, "relocatable", Takes::Bool, "Register for a relocatable link; later links ignore the images"),
        Row::ours(WrapperOption::Llvm, "llvm", Takes::Text("release"), "LLVM release of the host compiler: 19 to 23, or main; default 22"),
    ],
    required: &["kind"],
    positional: usize::MAX,
};

/// Values of the command line.
#[derive(Clone, Debug)]
pub(super) struct WrapperOptions {
    pub kind: OffloadKind,
    pub output: PathBuf,
    pub host: Triple,
    pub relocatable: bool,
    pub llvm: LlvmRelease,
    pub inputs: Vec<PathBuf>,
}

/// Words of `--kind`.
const KINDS: [(&str, OffloadKind); 4] = [
    ("openmp", OffloadKind::OPENMP),
    ("cuda", OffloadKind::CUDA),
    ("hip", OffloadKind::HIP),
    ("sycl", OffloadKind::SYCL),
];

/// Unknown kind.
#[derive(Debug)]
pub(super) struct UnknownKind(pub String);

impl WrapperOptions {
    /// Parses the options. `llvm` is the release without `--llvm`. The inner error is an unknown kind.
    pub(super) fn new(
        llvm: LlvmRelease,
        values: Vec<(WrapperOption, Value)>,
        inputs: Vec<OsString>,
    ) -> Result<Result<Self, UnknownKind>, LlvmToolError> {
        let mut kind = OffloadKind::OPENMP;
        let mut output = None;
        let mut host = format!("{}-pc-linux-gnu", std::env::consts::ARCH);
        let mut relocatable = false;
        let mut release = llvm;
        for (id, value) in values {
            match (id, value) {
                (WrapperOption::Kind, Value::Text(text)) => {
                    let text = text.to_string_lossy();
                    match KINDS.iter().find(|(word, _)| *word == text) {
                        Some((_, known)) => kind = *known,
                        None => return Ok(Err(UnknownKind(text.into_owned()))),
                    }
                }
                (WrapperOption::Output, Value::Text(text)) => output = Some(PathBuf::from(text)),
                (WrapperOption::Triple, Value::Text(text)) => {
                    host = text.to_string_lossy().into_owned()
                }
                (WrapperOption::Llvm, Value::Text(text)) => {
                    release = installation::of_option(&text)?;
                }
                (WrapperOption::Relocatable, Value::Bool(on)) => relocatable = on,
                _ => {}
            }
        }
        let output = output.filter(|output| !output.as_os_str().is_empty());
        let output = output.ok_or_else(|| {
            LlvmToolError::new("no output file").with_hint(Some(
                "`-o <file>`: an object for .o, C for .c, else LLVM IR".into(),
            ))
        })?;
        let host = Triple::parse(&host)
            .map_err(|error| LlvmToolError::new(format!("--triple: {error}")))?;
        Ok(Ok(Self {
            kind,
            output,
            host,
            relocatable,
            llvm: release,
            inputs: inputs.into_iter().map(PathBuf::from).collect(),
        }))
    }
}
