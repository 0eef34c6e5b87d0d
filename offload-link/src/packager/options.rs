//! The packager's options.

use std::ffi::OsString;
use std::path::PathBuf;

use offload_formats::names::LlvmRelease;

use super::image_argument::ImageArgument;
use crate::decompressed;
use crate::llvm_tool::{LlvmToolError, installation};
use crate::options::llvm::{HelpGroup, Row, Table, Takes, Value};

/// Meaning of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackagerOption {
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

/// Options of `llvm-offload-binary` 22.1, of LLVM's main branch, and ours.
#[rustfmt::skip]
pub(super) const TABLE: Table<PackagerOption> = Table {
    rows: &[
        Row::new(PackagerOption::Archive, "archive", Takes::Bool, "Write extracted files to a static archive"),
        Row::new(PackagerOption::Image, "image", Takes::Text("<key>=<value>,..."), "List of key and value arguments. Required keywords are 'file' and 'triple'."),
        Row::new(PackagerOption::Output, "o", Takes::Text("file"), "Write output to <file>."),
        Row::ours(PackagerOption::Compress, "compress", Takes::Bool, "Compress the offload binary; only LLVM's main branch reads it"),
        Row::ours(PackagerOption::Format, "compression-format", Takes::Text("zstd|zlib"), "Compression format"),
        Row::ours(PackagerOption::Level, "compression-level", Takes::Int("n"), "Compression level"),
        Row::ours(PackagerOption::FromYaml, "from-yaml", Takes::Text("file"), "Pack the offload binary that a !Offload document describes"),
        Row::ours(PackagerOption::List, "list", Takes::BoolOr(&["json"]), "List the images of the input; =json prints JSON"),
        Row::ours(PackagerOption::Llvm, "llvm", Takes::Text("release"), "Write the formats of this LLVM release: 19 to 23, or main; default 22"),
        Row::ours(PackagerOption::Limit, decompressed::OPTION, Takes::Text("size"), decompressed::HELP),
        Row::ours(PackagerOption::RequireMatch, "require-match", Takes::Bool, "Fail if an --image matches no image"),
        Row::ours(PackagerOption::Yaml, "yaml", Takes::Bool, "Print the input as a !Offload document"),
        Row::new(PackagerOption::Help, "h", Takes::Bool, "").listed(HelpGroup::Unlisted),
        Row::new(PackagerOption::Nothing, "print-options", Takes::Bool, "Accepted; has no effect").listed(HelpGroup::GenericHidden),
        Row::new(PackagerOption::Nothing, "print-all-options", Takes::Bool, "Accepted; has no effect").listed(HelpGroup::GenericHidden),
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
pub(super) struct PackagerOptions {
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

impl PackagerOptions {
    /// Parses the options. `llvm` is the release without `--llvm`.
    pub(super) fn new(
        llvm: LlvmRelease,
        values: Vec<(PackagerOption, Value)>,
        positional: Vec<OsString>,
    ) -> Result<Self, LlvmToolError> {
        let mut options = Self {
            llvm,
            ..Self::default()
        };
        let path = |text: OsString| (!text.is_empty()).then(|| PathBuf::from(text));
        options.input = positional.into_iter().next().and_then(path);
        for (id, value) in values {
            match (id, value) {
                (PackagerOption::Output, Value::Text(text)) => options.output = path(text),
                (PackagerOption::Image, Value::Text(text)) => {
                    options.images.push(ImageArgument::parse(&text))
                }
                (PackagerOption::FromYaml, Value::Text(text)) => options.from_yaml = path(text),
                (PackagerOption::Format, Value::Text(text)) => {
                    options.format = Some(text.to_string_lossy().into_owned());
                }
                (PackagerOption::Limit, Value::Text(text)) => {
                    options.limit = Some(text.to_string_lossy().into_owned());
                }
                (PackagerOption::Llvm, Value::Text(text)) => {
                    options.llvm = installation::of_option(&text)?;
                }
                (PackagerOption::Level, Value::Int(level)) => options.level = Some(level),
                (PackagerOption::List, Value::Text(_)) => options.listing = Some(ListFormat::Json),
                (PackagerOption::List, Value::Bool(on)) => {
                    options.listing = on.then_some(ListFormat::Table)
                }
                (PackagerOption::Yaml, Value::Bool(on)) => {
                    options.listing = on.then_some(ListFormat::Yaml)
                }
                (PackagerOption::Archive, Value::Bool(on)) => options.archive = on,
                (PackagerOption::RequireMatch, Value::Bool(on)) => options.require_match = on,
                (PackagerOption::Compress, Value::Bool(on)) => options.compress = on,
                (PackagerOption::Help, Value::Bool(on)) => options.help = on,
                _ => {}
            }
        }
        Ok(options)
    }
}
