//! The packager's options.

use std::ffi::OsString;
use std::path::PathBuf;

use offload_formats::names::LlvmRelease;

use super::image_argument::ImageArgument;
use crate::decompressed;
use crate::llvm_tool::Error;
use crate::options::llvm::{HelpGroup, Row, Table, Takes, Value};

/// Meaning of an option.
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

/// Options of `llvm-offload-binary` 22.1, of LLVM's main branch, and ours.
#[rustfmt::skip]
pub(super) const TABLE: Table<Id> = Table {
    rows: &[
        row(Id::Archive, "archive", Takes::Bool, "Write extracted files to a static archive"),
        row(Id::Image, "image", Takes::Text("<key>=<value>,..."), "List of key and value arguments. Required keywords are 'file' and 'triple'."),
        row(Id::Output, "o", Takes::Text("file"), "Write output to <file>."),
        ours(Id::Compress, "compress", Takes::Bool, "Compress the offload binary; only LLVM's main branch reads it"),
        ours(Id::Format, "compression-format", Takes::Text("zstd|zlib"), "Compression format"),
        ours(Id::Level, "compression-level", Takes::Int("n"), "Compression level"),
        ours(Id::FromYaml, "from-yaml", Takes::Text("file"), "Pack the offload binary that a !Offload document describes"),
        ours(Id::List, "list", Takes::BoolOr(&["json"]), "List the images of the input; =json prints JSON"),
        ours(Id::Llvm, "llvm", Takes::Text("release"), "Write the formats of this LLVM release: 19 to 23, or main; default 22"),
        ours(Id::Limit, decompressed::OPTION, Takes::Text("size"), decompressed::HELP),
        ours(Id::RequireMatch, "require-match", Takes::Bool, "Fail if an --image matches no image"),
        ours(Id::Yaml, "yaml", Takes::Bool, "Print the input as a !Offload document"),
        row(Id::Help, "h", Takes::Bool, "").listed(HelpGroup::Unlisted),
        row(Id::Nothing, "print-options", Takes::Bool, "Accepted; has no effect").listed(HelpGroup::GenericHidden),
        row(Id::Nothing, "print-all-options", Takes::Bool, "Accepted; has no effect").listed(HelpGroup::GenericHidden),
    ],
    required: &[],
    positional: 1,
};

/// Form of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListFormat {
    /// A table for people.
    Table,
    /// JSON.
    Json,
    /// A `!Offload` document.
    Yaml,
}

/// Values of options and variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub help: bool,
    /// Output file. Like in LLVM, an empty name counts as missing.
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
    /// Limit on decompressed offload binaries, as given.
    pub limit: Option<String>,
}

impl Options {
    /// Parses the options. `llvm` is the release without `--llvm`.
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
