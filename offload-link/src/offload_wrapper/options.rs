//! The options of the offload wrapper.

use std::ffi::OsString;
use std::path::PathBuf;

use offload_formats::names::{LlvmRelease, OffloadKind, Triple};

use crate::llvm_tool::Error;
use crate::options::llvm::{HelpGroup, Row, Table, Takes, Value};

/// What an option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Kind,
    Output,
    Triple,
    Relocatable,
    Llvm,
}

const fn row(id: Id, name: &'static str, takes: Takes, help: &'static str) -> Row<Id> {
    Row::new(id, name, takes, help)
}

/// Every option of `llvm-offload-wrapper` 22.1, those of the main branch, and ours.
#[rustfmt::skip]
pub(super) const TABLE: Table<Id> = Table {
    rows: &[
        row(Id::Kind, "kind", Takes::Text("value"), "Who registers the images: openmp, cuda, hip or sycl"),
        row(Id::Output, "o", Takes::Text("file"), "Where to write: an object (.o, .obj), C (.c), or else LLVM IR"),
        row(Id::Triple, "triple", Takes::Text("string"), "The host; default: this machine"),
        row(Id::Relocatable, "relocatable", Takes::Bool, "For a relocatable link: the images are finished"),
        row(Id::Llvm, "llvm", Takes::Text("release"), "The compiler of the host: 19 to 23, or main; default 22").listed(HelpGroup::Ours),
    ],
    required: &["kind"],
    positional: usize::MAX,
};

/// What was asked for.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub kind: OffloadKind,
    pub output: PathBuf,
    pub host: Triple,
    pub relocatable: bool,
    pub llvm: LlvmRelease,
    pub inputs: Vec<PathBuf>,
}

/// The words of `--kind`.
const KINDS: [(&str, OffloadKind); 4] = [
    ("openmp", OffloadKind::OPENMP),
    ("cuda", OffloadKind::CUDA),
    ("hip", OffloadKind::HIP),
    ("sycl", OffloadKind::SYCL),
];

/// A kind that there is not.
#[derive(Debug)]
pub(super) struct UnknownKind(pub String);

impl Options {
    /// `llvm` is what the command line may replace. Within, a kind that there is not.
    pub(super) fn new(
        llvm: LlvmRelease,
        values: Vec<(Id, Value)>,
        inputs: Vec<OsString>,
    ) -> Result<Result<Self, UnknownKind>, Error> {
        let mut kind = OffloadKind::OPENMP;
        let mut output = None;
        let mut host = format!("{}-pc-linux-gnu", std::env::consts::ARCH);
        let mut relocatable = false;
        let mut release = llvm;
        for (id, value) in values {
            match (id, value) {
                (Id::Kind, Value::Text(text)) => {
                    let text = text.to_string_lossy();
                    match KINDS.iter().find(|(word, _)| *word == text) {
                        Some((_, known)) => kind = *known,
                        None => return Ok(Err(UnknownKind(text.into_owned()))),
                    }
                }
                (Id::Output, Value::Text(text)) => output = Some(PathBuf::from(text)),
                (Id::Triple, Value::Text(text)) => host = text.to_string_lossy().into_owned(),
                (Id::Llvm, Value::Text(text)) => {
                    let parsed = text.to_string_lossy().parse();
                    release = parsed.map_err(|error| Error::new(format!("--llvm: {error}")))?;
                }
                (Id::Relocatable, Value::Bool(on)) => relocatable = on,
                _ => {}
            }
        }
        let output = output.filter(|output| !output.as_os_str().is_empty());
        let output = output.ok_or_else(|| {
            Error::new("no output file").with_hint(Some(
                "`-o <file>`: an object for .o, C for .c, else LLVM IR".into(),
            ))
        })?;
        let host =
            Triple::parse(&host).map_err(|error| Error::new(format!("--triple: {error}")))?;
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
