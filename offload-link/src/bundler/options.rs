//! Options of the bundler, and the environment variables that replace some of them.

use std::ffi::OsString;
use std::path::PathBuf;

use offload_formats::format::compressed_bundle::{CompressedBundleVersion, Method};
use offload_formats::names::LlvmRelease;

use crate::decompressed;
use crate::llvm_tool::bundle_settings::BundleSettings;
use crate::llvm_tool::{LlvmToolError, installation};
use crate::options::llvm::{HelpGroup, Row, Table, Takes, Value};

/// Meaning of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundlerOption {
    Type,
    Targets,
    Input,
    Inputs,
    Output,
    Outputs,
    Unbundle,
    List,
    AllowMissing,
    Align,
    CheckArchive,
    HipOpenmp,
    Compress,
    Level,
    Verbose,
    Print,
    Help,
    ExtractAll,
    Filter,
    Bundle,
    Method,
    Threads,
    Limit,
    Llvm,
    /// Accepted; has no effect in LLVM's tool either.
    Nothing,
}

const TEXT: Takes = Takes::Text("string");
const TEXTS: Takes = Takes::Texts("string");

/// Options of `clang-offload-bundler` 22.1, and ours.
#[rustfmt::skip]
pub(super) const TABLE: Table<BundlerOption> = Table {
    rows: &[
        Row::new(BundlerOption::Print, "###", Takes::Bool, "Print any external commands that are to be executed instead of actually executing them - for testing purposes."),
        Row::new(BundlerOption::AllowMissing, "allow-missing-bundles", Takes::Bool, "Create empty files if bundles are missing when unbundling."),
        Row::new(BundlerOption::Align, "bundle-align", Takes::Uint("uint"), "Alignment of bundle for binary files"),
        Row::new(BundlerOption::CheckArchive, "check-input-archive", Takes::Bool, "Check if input heterogeneous archive is valid in terms of TargetID rules."),
        Row::new(BundlerOption::Compress, "compress", Takes::Bool, "Compress output file when bundling."),
        Row::new(BundlerOption::Level, "compression-level", Takes::Int("n"), "Specify the compression level (integer)"),
        Row::new(BundlerOption::HipOpenmp, "hip-openmp-compatible", Takes::Bool, "Treat hip and hipv4 offload kinds as compatible with openmp kind, and vice versa."),
        Row::new(BundlerOption::Input, "input", TEXT, "Input file. Can be specified multiple times for multiple input files."),
        Row::new(BundlerOption::Inputs, "inputs", TEXTS, "[<input file>,...] (deprecated)"),
        Row::new(BundlerOption::List, "list", Takes::BoolOr(&["long", "json"]), "List bundle IDs in the bundled file."),
        Row::new(BundlerOption::Output, "output", TEXT, "Output file. Can be specified multiple times for multiple output files."),
        Row::new(BundlerOption::Outputs, "outputs", TEXTS, "[<output file>,...] (deprecated)"),
        Row::new(BundlerOption::Targets, "targets", TEXTS, "[<offload kind>-<target triple>,...]"),
        Row::new(BundlerOption::Type, "type", TEXT, TYPE_HELP),
        Row::new(BundlerOption::Unbundle, "unbundle", Takes::Bool, "Unbundle bundled file into several output files."),
        Row::new(BundlerOption::Verbose, "verbose", Takes::Bool, "Print debug information."),
        Row::ours(BundlerOption::Bundle, "bundle", Takes::Uint("n"), "Use only the n-th bundle of the input, counted from 0"),
        Row::ours(BundlerOption::Method, "compression-method", TEXT, "Compression method: zstd or zlib"),
        Row::ours(BundlerOption::ExtractAll, "extract-all", Takes::Text("dir"), "Write every image of the input to a file in <dir>, and print the files' names"),
        Row::ours(BundlerOption::Filter, "filter", TEXTS, "[<target ID>,...]: list or extract only images for these processors"),
        // Only for help: no option's name contains `=`.
        Row::ours(BundlerOption::Nothing, "list=long|json", Takes::Bool, "List with sizes and offsets, as a table or as JSON"),
        Row::ours(BundlerOption::Llvm, "llvm", Takes::Text("release"), "Write the formats of this LLVM release: 19 to 23, or main; default 22"),
        Row::ours(BundlerOption::Limit, decompressed::OPTION, Takes::Text("size"), decompressed::HELP),
        Row::ours(BundlerOption::Threads, "threads", Takes::Uint("n"), "Number of compression threads; default: one for each processor"),
        Row::new(BundlerOption::Help, "h", Takes::Bool, "").listed(HelpGroup::Unlisted),
        Row::new(BundlerOption::Nothing, "print-options", Takes::Bool, "Accepted; has no effect").listed(HelpGroup::GenericHidden),
        Row::new(BundlerOption::Nothing, "print-all-options", Takes::Bool, "Accepted; has no effect").listed(HelpGroup::GenericHidden),
    ],
    required: &["type"],
    positional: 0,
};

const TYPE_HELP: &str = "Type of the files to be bundled/unbundled.\nCurrent supported types are:";

/// Table for the tool's own name: an argument without an option is an input, and its type is detected.
pub(super) const OWN_TABLE: Table<BundlerOption> = Table {
    required: &[],
    positional: usize::MAX,
    ..TABLE
};

/// Form of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// Entry IDs, one a line.
    Ids,
    /// A table for people.
    Long,
    /// JSON.
    Json,
}

/// Values of options and variables.
#[derive(Clone, Debug, Default)]
pub(super) struct BundlerOptions {
    pub help: bool,
    /// Type; `None` if it must be detected.
    pub file_type: Option<String>,
    /// Targets; `None` if the option is missing.
    pub targets: Option<Vec<String>>,
    pub input: Vec<PathBuf>,
    pub inputs: Vec<PathBuf>,
    pub output: Vec<PathBuf>,
    pub outputs: Vec<PathBuf>,
    pub unbundle: bool,
    pub list: Option<Listing>,
    pub extract_all: Option<PathBuf>,
    pub filter: Vec<String>,
    pub bundle: Option<usize>,
    pub allow_missing: bool,
    pub align: Option<u32>,
    pub check_archive: bool,
    pub hip_openmp: bool,
    /// Settings that variables have, too.
    pub settings: BundleSettings,
    pub method: Method,
    pub threads: Option<u32>,
    /// Limit on decompressed bundles, as given.
    pub limit: Option<String>,
    pub print: bool,
    pub llvm: LlvmRelease,
}

impl BundlerOptions {
    /// Reads the environment: `variable` looks up one, and `stands_for` is the release without one. Adds warnings to
    /// `warnings`.
    pub(super) fn from_environment(
        stands_for: LlvmRelease,
        variable: impl Fn(&str) -> Option<OsString>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, LlvmToolError> {
        let release = variable(installation::VARIABLE);
        let release = installation::of_variable(release.as_deref()).map_err(LlvmToolError::new)?;
        Ok(Self {
            llvm: release.unwrap_or(stands_for),
            settings: BundleSettings::from_environment(variable, warnings),
            ..Self::default()
        })
    }

    /// Applies the options of the command line, in order.
    pub(super) fn apply(
        &mut self,
        values: Vec<(BundlerOption, Value)>,
    ) -> Result<(), LlvmToolError> {
        for (id, value) in values {
            match value {
                Value::Bool(on) => self.switch(id, on),
                Value::Uint(number) => match id {
                    BundlerOption::Align => self.align = Some(number),
                    BundlerOption::Bundle => self.bundle = usize::try_from(number).ok(),
                    _ => self.threads = Some(number),
                },
                Value::Int(level) => self.settings.level = Some(level),
                Value::Text(text) => self.text(id, text)?,
            }
        }
        Ok(())
    }

    fn switch(&mut self, id: BundlerOption, on: bool) {
        match id {
            BundlerOption::Unbundle => self.unbundle = on,
            BundlerOption::List => self.list = on.then_some(Listing::Ids),
            BundlerOption::AllowMissing => self.allow_missing = on,
            BundlerOption::CheckArchive => self.check_archive = on,
            BundlerOption::HipOpenmp => self.hip_openmp = on,
            BundlerOption::Compress => self.settings.compress = on,
            BundlerOption::Verbose => self.settings.verbose = on,
            BundlerOption::Print => self.print = on,
            BundlerOption::Help => self.help = on,
            _ => {}
        }
    }

    fn text(&mut self, id: BundlerOption, text: OsString) -> Result<(), LlvmToolError> {
        let lossy = || text.to_string_lossy().into_owned();
        match id {
            BundlerOption::Type => self.file_type = Some(lossy()),
            BundlerOption::Targets => self.targets.get_or_insert_default().push(lossy()),
            BundlerOption::Input => self.input.push(text.into()),
            BundlerOption::Inputs => self.inputs.push(text.into()),
            BundlerOption::Output => self.output.push(text.into()),
            BundlerOption::Outputs => self.outputs.push(text.into()),
            BundlerOption::List if text == "json" => self.list = Some(Listing::Json),
            BundlerOption::List => self.list = Some(Listing::Long),
            BundlerOption::ExtractAll => self.extract_all = Some(text.into()),
            BundlerOption::Filter => self.filter.push(lossy()),
            BundlerOption::Method => {
                let methods = [Method::Zstd, Method::Zlib];
                let found = methods
                    .into_iter()
                    .find(|method| method.name() == text.as_os_str());
                self.method = found.ok_or_else(|| {
                    LlvmToolError::new(format!(
                        "--compression-method: `{}` is not a method; expected `zstd` or `zlib`",
                        lossy()
                    ))
                })?;
            }
            BundlerOption::Limit => self.limit = Some(lossy()),
            BundlerOption::Llvm => self.llvm = installation::of_option(&text)?,
            _ => {}
        }
        Ok(())
    }

    /// Adds the files of the command line. Without an option for them, they are listed.
    pub(super) fn files(&mut self, files: Vec<OsString>) {
        let idle = self.list.is_none() && self.extract_all.is_none() && self.targets.is_none();
        if idle && !self.unbundle && !files.is_empty() {
            self.list = Some(Listing::Long);
        }
        self.input.extend(files.into_iter().map(PathBuf::from));
    }

    /// Returns the version of compressed bundles: from a variable, else from the release.
    pub(super) fn version(&self) -> CompressedBundleVersion {
        self.settings.version_for(self.llvm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> (BundlerOptions, Vec<String>) {
        let mut warnings = Vec::new();
        let lookup = |name: &str| {
            let pair = pairs.iter().find(|(known, _)| *known == name);
            pair.map(|(_, value)| OsString::from(value))
        };
        let options =
            BundlerOptions::from_environment(LlvmRelease::V22, lookup, &mut warnings).unwrap();
        (options, warnings)
    }

    #[test]
    fn takes_the_version_from_the_release() {
        for (release, version) in [
            ("19", CompressedBundleVersion::V2),
            ("21", CompressedBundleVersion::V2),
            ("22", CompressedBundleVersion::V3),
        ] {
            assert_eq!(
                environment(&[("OFFLOAD_LLVM", release)]).0.version(),
                version
            );
        }
        let bad = |_: &str| Some("18".into());
        let error = BundlerOptions::from_environment(LlvmRelease::V22, bad, &mut Vec::new());
        assert!(error.unwrap_err().to_string().starts_with("OFFLOAD_LLVM: "));
    }
}
