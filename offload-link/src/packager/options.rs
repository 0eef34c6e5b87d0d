//! The packager's options.

use std::ffi::OsString;
use std::path::PathBuf;

use offload_formats::names::LlvmRelease;

use super::image_argument::ImageArgument;
use crate::decompressed;
use crate::llvm_tool::Error;
use crate::options::llvm::{HelpGroup, Row, Table, Takes, Value};

/// What an option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Output,
    Image,
    Archive,
    Help,
    List,
    Yaml,
    FromYaml,
    RequireMatch,
    Llvm,
    Compress,
    Format,
    Level,
    Limit,
    /// Accepted; has no effect in LLVM's tool either.
    Nothing,
}

const fn row(id: Id, name: &'static str, takes: Takes, help: &'static str) -> Row<Id> {
    Row::new(id, name, takes, help)
}

const fn ours(id: Id, name: &'static str, takes: Takes, help: &'static str) -> Row<Id> {
    Row::new(id, name, takes, help).listed(HelpGroup::Ours)
}

/// Every option of `llvm-offload-binary` 22.1, those of the main branch, and ours.
#[rustfmt::skip]
pub(super) const TABLE: Table<Id> = Table {
    rows: &[
        row(Id::Archive, "archive", Takes::Bool, "Write extracted files to a static archive"),
        row(Id::Image, "image", Takes::Text("<key>=<value>,..."), "List of key and value arguments. Required keywords are 'file' and 'triple'."),
        row(Id::Output, "o", Takes::Text("file"), "Write output to <file>."),
        ours(Id::Compress, "compress", Takes::Bool, "Compress what is packed; only LLVM after 23 reads it"),
        ours(Id::Format, "compression-format", Takes::Text("zstd|zlib"), "How to compress"),
        ours(Id::Level, "compression-level", Takes::Int("n"), "How hard to compress"),
        ours(Id::FromYaml, "from-yaml", Takes::Text("file"), "Pack what a !Offload document says"),
        ours(Id::List, "list", Takes::BoolOr(&["json"]), "List the images of the input; with =json for programs"),
        ours(Id::Llvm, "llvm", Takes::Text("release"), "Write as this release does: 19 to 23, or main; default 22"),
        ours(Id::Limit, decompressed::OPTION, Takes::Text("size"), decompressed::HELP),
        ours(Id::RequireMatch, "require-match", Takes::Bool, "Fail when an --image matches nothing"),
        ours(Id::Yaml, "yaml", Takes::Bool, "Print the input as a !Offload document"),
        row(Id::Help, "h", Takes::Bool, "").listed(HelpGroup::Unlisted),
        row(Id::Nothing, "print-options", Takes::Bool, "Accepted; has no effect").listed(HelpGroup::GenericHidden),
        row(Id::Nothing, "print-all-options", Takes::Bool, "Accepted; has no effect").listed(HelpGroup::GenericHidden),
    ],
    required: &[],
    positional: 1,
};

/// What listing shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListFormat {
    /// A table for people.
    Table,
    /// JSON.
    Json,
    /// A `!Offload` document.
    Yaml,
}

/// What was asked for, as far as the command line and the environment say.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub help: bool,
    /// Empty ones count as not given, as in LLVM.
    pub output: Option<PathBuf>,
    pub input: Option<PathBuf>,
    pub images: Vec<ImageArgument>,
    pub archive: bool,
    pub listing: Option<ListFormat>,
    pub from_yaml: Option<PathBuf>,
    pub require_match: bool,
    pub llvm: LlvmRelease,
    pub compress: bool,
    pub format: Option<String>,
    pub level: Option<i32>,
    /// Limit on what compressed offload binaries may become, as given.
    pub limit: Option<String>,
}

impl Options {
    /// `llvm` is what the command line may replace.
    pub(super) fn new(
        llvm: LlvmRelease,
        values: Vec<(Id, Value)>,
        positional: Vec<OsString>,
    ) -> Result<Self, Error> {
        let mut options = Self {
            llvm,
            ..Self::default()
        };
        let path = |text: OsString| (!text.is_empty()).then(|| PathBuf::from(text));
        options.input = positional.into_iter().next().and_then(path);
        for (id, value) in values {
            match (id, value) {
                (Id::Output, Value::Text(text)) => options.output = path(text),
                (Id::Image, Value::Text(text)) => options.images.push(ImageArgument::parse(&text)),
                (Id::FromYaml, Value::Text(text)) => options.from_yaml = path(text),
                (Id::Format, Value::Text(text)) => {
                    options.format = Some(text.to_string_lossy().into_owned());
                }
                (Id::Limit, Value::Text(text)) => {
                    options.limit = Some(text.to_string_lossy().into_owned());
                }
                (Id::Llvm, Value::Text(text)) => {
                    let release = text.to_string_lossy().parse();
                    options.llvm =
                        release.map_err(|error| Error::new(format!("--llvm: {error}")))?;
                }
                (Id::Level, Value::Int(level)) => options.level = Some(level),
                (Id::List, Value::Text(_)) => options.listing = Some(ListFormat::Json),
                (Id::List, Value::Bool(on)) => options.listing = on.then_some(ListFormat::Table),
                (Id::Yaml, Value::Bool(on)) => options.listing = on.then_some(ListFormat::Yaml),
                (Id::Archive, Value::Bool(on)) => options.archive = on,
                (Id::RequireMatch, Value::Bool(on)) => options.require_match = on,
                (Id::Compress, Value::Bool(on)) => options.compress = on,
                (Id::Help, Value::Bool(on)) => options.help = on,
                _ => {}
            }
        }
        Ok(options)
    }
}
