//! Checks the options in LLVM's order (`docs/spec/bundler.md` §1.4), and turns them into a request.

use crate::say::Warn;
use std::num::NonZeroU32;
use std::path::PathBuf;

use offload_formats::format::compressed_bundle::Compression;
use offload_formats::names::entry_id::KindRule;

use super::file_type::FileType;
use super::options::{BundlerOptions, Listing};
use super::targets::Targets;
use crate::decompressed;
use crate::llvm_tool::{LlvmToolError, compression};

/// One request, with the names of its files, which have not been opened.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// Prints the content of a file.
    List { from: From, listing: Listing },
    /// Writes all images of a file.
    ExtractAll { from: From, folder: PathBuf },
    /// Makes one file of several.
    Bundle {
        inputs: Vec<PathBuf>,
        targets: Targets,
        output: PathBuf,
    },
    /// Makes several files of one.
    Unbundle {
        from: From,
        targets: Targets,
        outputs: Vec<PathBuf>,
        check_archive: bool,
    },
}

/// The file to read, and the selected part of it.
#[derive(Clone, Debug)]
pub(super) struct From {
    pub path: PathBuf,
    /// Filters as typed after `--filter`.
    pub filter: Vec<String>,
    /// Index of the only bundle to read.
    pub bundle: Option<usize>,
}

/// Settings that apply to every request.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    /// Value of `-type`, checked when the inputs are open, like in LLVM; `None` means detection.
    pub file_type: Option<String>,
    pub allow_missing: bool,
    pub hip_openmp: bool,
    /// Which members of archives are read.
    pub members: Members,
    pub align: u32,
    pub compression: Option<Compression>,
    /// Limit on a decompressed bundle, in bytes.
    pub limit: u64,
    pub verbose: bool,
    /// Print external commands instead of running them.
    pub print: bool,
}

/// Which members of archives are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Members {
    /// The same members as LLVM: texts and truncated objects count as members without bundles.
    AsLlvm,
    /// All members that linkers read, texts too; a truncated object is an error.
    All,
}

impl Manner {
    /// Returns the type that `-type` names, if it was given.
    pub(super) fn file_type(&self) -> Result<Option<FileType>, LlvmToolError> {
        let Some(name) = &self.file_type else {
            return Ok(None);
        };
        let invalid = || LlvmToolError::new(format!("'{name}': invalid file type specified"));
        FileType::from_name(name).ok_or_else(invalid).map(Some)
    }

    /// Returns which offload kinds serve each other.
    pub(super) fn kind_rule(&self) -> KindRule {
        match self.hip_openmp {
            true => KindRule::HipAndOpenmp,
            false => KindRule::SameRuntime,
        }
    }
}

/// Fails with `text` if there is a problem.
fn refuse(problem: bool, text: &str) -> Result<(), LlvmToolError> {
    match problem {
        true => Err(LlvmToolError::new(text)),
        false => Ok(()),
    }
}

impl BundlerOptions {
    pub(super) fn manner(&self) -> Result<Manner, LlvmToolError> {
        let limit = decompressed::limit(self.limit.as_deref());
        Ok(Manner {
            file_type: self.file_type.clone(),
            allow_missing: self.allow_missing,
            hip_openmp: self.hip_openmp,
            members: match self.file_type {
                Some(_) => Members::AsLlvm,
                None => Members::All,
            },
            align: self.align.unwrap_or(1),
            compression: self.settings.compress.then(|| Compression {
                version: self.version(),
                method: self.method,
                level: self.settings.level,
                threads: self
                    .threads
                    .and_then(NonZeroU32::new)
                    .unwrap_or_else(compression::all_processors),
            }),
            limit: limit.map_err(LlvmToolError::new)?.files(),
            verbose: self.settings.verbose,
            print: self.print,
        })
    }

    /// Checks everything that needs no file.
    pub(super) fn request(mut self, warn: Warn<'_>) -> Result<Request, LlvmToolError> {
        let inputs = one_form("input", &mut self.input, &mut self.inputs, warn)?;
        let outputs = one_form("output", &mut self.output, &mut self.outputs, warn)?;
        if self.list.is_some() || self.extract_all.is_some() {
            return self.reading(inputs, &outputs);
        }
        if !self.filter.is_empty() {
            return Err(LlvmToolError::new(
                "--filter can only be used with -list and --extract-all",
            ));
        }
        if self.check_archive {
            refuse(
                !self.unbundle,
                "-check-input-archive cannot be used while bundling",
            )?;
            refuse(
                self.file_type.as_deref() != Some("a"),
                "-check-input-archive can only be used for unbundling archives (-type=a)",
            )?;
        }
        refuse(outputs.is_empty(), "no output file specified!")?;
        let Some(targets) = &self.targets else {
            return Err(LlvmToolError::new(
                "for the --targets option: must be specified at least once!",
            ));
        };
        self.check_counts(inputs.len(), outputs.len(), targets.len())?;
        let targets = Targets::parse(targets, self.llvm)?;
        targets.check_hosts(self.unbundle)?;
        targets.warnings().for_each(warn);
        Ok(if self.unbundle {
            Request::Unbundle {
                check_archive: self.check_archive,
                from: self.from(inputs),
                targets,
                outputs,
            }
        } else {
            Request::Bundle {
                inputs,
                targets,
                output: only(outputs),
            }
        })
    }

    /// Checks the number of files, and options that only one mode has.
    fn check_counts(
        &self,
        inputs: usize,
        outputs: usize,
        targets: usize,
    ) -> Result<(), LlvmToolError> {
        if self.unbundle {
            refuse(
                inputs != 1,
                "only one input file supported in unbundling mode",
            )?;
            return refuse(
                outputs != targets,
                "number of output files and targets should match in unbundling mode",
            );
        }
        refuse(
            self.file_type.as_deref() == Some("a"),
            "Archive files are only supported for unbundling",
        )?;
        refuse(
            outputs != 1,
            "only one output file supported in bundling mode",
        )?;
        refuse(
            inputs != targets,
            "number of input files and targets should match in bundling mode",
        )?;
        refuse(
            self.align == Some(0),
            "-bundle-align: `0` is not an alignment",
        )?;
        refuse(
            self.bundle.is_some(),
            "--bundle cannot be used while bundling",
        )
    }

    /// Returns the request of `-list` or `--extract-all`.
    fn reading(self, inputs: Vec<PathBuf>, outputs: &[PathBuf]) -> Result<Request, LlvmToolError> {
        let option = match &self.extract_all {
            Some(_) => "--extract-all",
            None => "-list",
        };
        let refuse = |text: String| Err(LlvmToolError::new(text));
        if self.list.is_some() && self.extract_all.is_some() {
            return refuse("-list and --extract-all cannot be used together".into());
        }
        if self.unbundle {
            return refuse(format!("-unbundle and {option} cannot be used together"));
        }
        if inputs.len() != 1 {
            return refuse(format!("only one input file supported for {option}"));
        }
        if !outputs.is_empty() {
            return refuse(format!("-outputs option is invalid for {option}"));
        }
        if self.targets.is_some() {
            return refuse(format!("-targets option is invalid for {option}"));
        }
        let (listing, folder) = (self.list, self.extract_all.clone());
        let from = self.from(inputs);
        Ok(match folder {
            Some(folder) => Request::ExtractAll { from, folder },
            None => Request::List {
                from,
                listing: listing.unwrap_or(Listing::Ids),
            },
        })
    }

    fn from(self, inputs: Vec<PathBuf>) -> From {
        From {
            path: only(inputs),
            filter: self.filter,
            bundle: self.bundle,
        }
    }
}

/// Returns the file of a list that was checked to have one.
fn only(mut files: Vec<PathBuf>) -> PathBuf {
    files.pop().expect("the number of files was checked")
}

/// Returns the files of the plural or the singular option, whichever was used.
fn one_form(
    name: &str,
    new: &mut Vec<PathBuf>,
    old: &mut Vec<PathBuf>,
    warn: Warn<'_>,
) -> Result<Vec<PathBuf>, LlvmToolError> {
    if old.is_empty() {
        return Ok(std::mem::take(new));
    }
    if !new.is_empty() {
        return Err(LlvmToolError::new(format!(
            "-{name}s and -{name} cannot be used together, use only -{name} instead"
        )));
    }
    warn(format!("-{name}s is deprecated, use -{name} instead"));
    Ok(std::mem::take(old))
}

impl Targets {
    /// Requires one host for bundling, unless all targets are HIP's, and at most one for unbundling.
    fn check_hosts(&self, unbundle: bool) -> Result<(), LlvmToolError> {
        let hosts = self.hosts().count();
        let wanted = match (unbundle, self.only_hip()) {
            (true, _) => hosts <= 1,
            (false, true) => true,
            (false, false) => hosts == 1,
        };
        if wanted {
            return Ok(());
        }
        Err(LlvmToolError::new(format!(
            "expecting exactly one host target but got {hosts}"
        )))
    }
}
