//! What a build will do, as a value: printed for a dry run, compared in tests, executed.

use crate::declare::skipped::Skipped;
use crate::error::Error;
use crate::files;
use crate::inputs::libraries::Extraction;
use crate::messages;
use crate::messages::Failure;
use crate::plan::artifacts::Artifact;
use crate::plan::device_only::Packing;
use crate::plan::nvcc::Description;
use crate::plan::prebuilt::Take;
use crate::process::command::{Command, Quoted};
use crate::process::jobserver::Jobs;
use crate::steps::archive::Archive;
use crate::steps::register::Registration;
use crate::steps::task::{self, Digests, Task, TaskError};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// The steps of a build, in stages: the steps of one stage do not wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub(crate) stages: Vec<Vec<Step>>,
    /// Targets that get no image.
    pub(crate) skipped: Vec<Skipped>,
}

/// One step; later stages may read the files that it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Run programs, unless their output is up to date.
    Run(Task),
    /// Take the images for a target out of a library.
    Extract(Extraction),
    /// Check the linked images, write the object that registers them, and the file that Rust includes.
    Register(Registration),
    /// Read what nvcc linked and registered, and write the file that Rust includes.
    Describe(Description),
    /// Take an image out of a source.
    Take(Take),
    /// Check the linked images of a module without host code, and write their container and the file that Rust includes.
    Pack(Packing),
    /// Put the objects of a module into its static library.
    Archive(Archive),
    /// Write a library for programs that are linked elsewhere.
    Artifact(Artifact),
}

/// What an executed plan has to say.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Compilers' warnings, each once, by the title of the first task that gave it.
    pub(crate) warnings: Vec<(String, String)>,
    /// What was made, in the order of the plan.
    pub(crate) made: Vec<Made>,
}

/// What a step made, and from what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) title: String,
    pub(crate) outputs: Vec<PathBuf>,
    /// Every file that was read.
    pub(crate) inputs: Vec<PathBuf>,
    /// None for what was done in this process.
    pub(crate) commands: Vec<String>,
}

impl Plan {
    /// The libraries for programs that are linked elsewhere.
    pub(crate) fn artifacts(&self) -> impl Iterator<Item = &Artifact> {
        self.stages.iter().flatten().filter_map(|step| match step {
            Step::Artifact(artifact) => Some(artifact),
            _ => None,
        })
    }

    /// The programs that it starts, by path.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &Path> {
        let commands = self.stages.iter().flatten().flat_map(|step| match step {
            Step::Run(task) => task.commands.as_slice(),
            _ => &[],
        });
        let programs: BTreeSet<&Path> = commands.map(Command::program).collect();
        programs.into_iter().filter(|program| program.is_absolute())
    }

    /// Executes all steps, those of one stage in parallel.
    pub(crate) fn execute(&self, jobs: &Jobs) -> Result<Outcome, Error> {
        let digests = Digests::default();
        let mut outcome = Outcome::default();
        let mut seen = BTreeSet::new();
        for stage in &self.stages {
            let results = jobs.run(stage.iter().collect(), |step: &Step| step.execute(&digests));
            let mut failures = Vec::new();
            for (step, result) in stage.iter().zip(results) {
                match result {
                    Ok(done) => {
                        outcome.made.push(step.made(done.reads));
                        let mut new = messages::diagnostics(&done.messages);
                        new.retain(|text| seen.insert(messages::plain(text)));
                        if !new.is_empty() {
                            outcome.warnings.push((step.title(), new.concat()));
                        }
                    }
                    Err(failure) => failures.push((step.title(), failure)),
                }
            }
            if !failures.is_empty() {
                return Err(Error::new(messages::report(&failures)));
            }
        }
        Ok(outcome)
    }
}

impl Step {
    fn execute(&self, digests: &Digests) -> Result<task::Done, Failure> {
        Ok(match self {
            Self::Run(task) => task.run(digests).map_err(|error| match error {
                TaskError::Command(error, hint) => Failure::Command(error, hint),
                error => Failure::Other(Error::new(error)),
            })?,
            Self::Extract(extraction) => extraction.execute()?,
            Self::Register(registration) => registration.execute()?,
            Self::Describe(description) => description.execute()?,
            Self::Take(take) => take.execute()?,
            Self::Pack(packing) => packing.execute()?,
            Self::Archive(archive) => archive.execute()?,
            Self::Artifact(artifact) => artifact.execute()?,
        })
    }

    /// `reads` is what its programs read.
    fn made(&self, reads: Vec<PathBuf>) -> Made {
        let one = |path: &PathBuf| vec![path.clone()];
        let (outputs, inputs) = match self {
            Self::Run(task) => (one(&task.output), reads),
            Self::Extract(extraction) => (
                extraction
                    .files
                    .iter()
                    .map(|(_, path)| path.clone())
                    .collect(),
                one(&extraction.library),
            ),
            Self::Register(registration) => (registration.outputs(), registration.inputs()),
            Self::Describe(description) => (description.outputs(), description.inputs()),
            Self::Take(take) => (one(&take.output), one(&take.source)),
            Self::Pack(packing) => (packing.outputs(), packing.inputs()),
            Self::Archive(archive) => (one(&archive.library), archive.objects.clone()),
            Self::Artifact(artifact) => (one(&artifact.library), artifact.inputs()),
        };
        let commands = match self {
            Self::Run(task) => task.started().iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        Made {
            title: self.title(),
            outputs,
            inputs,
            commands,
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Run(task) => task.title.clone(),
            Self::Extract(Extraction {
                library, target, ..
            }) => format!("images of `{}` for {target}", library.display()),
            Self::Register(registration) => format!("registration of `{}`", registration.module),
            Self::Describe(description) => format!("kernels of `{}`", description.module),
            Self::Take(take) => format!("image of `{}` for {}", take.source.display(), take.target),
            Self::Pack(packing) => format!("images of `{}`", packing.module),
            Self::Archive(archive) => format!("library `{}`", archive.name),
            Self::Artifact(artifact) => format!("library `{}`", artifact.library.display()),
        }
    }
}

/// As a POSIX shell takes it; what is done in this process is a comment.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.skipped.iter().try_for_each(|skipped| {
            writeln!(f, "# {}", skipped.to_string().replace('\n', "\n# "))
        })?;
        let tasks = self.stages.iter().flatten().filter_map(|step| match step {
            Step::Run(task) => task.output.parent(),
            Step::Artifact(artifact) => artifact.library.parent(),
            Step::Extract(_)
            | Step::Register(_)
            | Step::Describe(_)
            | Step::Take(_)
            | Step::Pack(_)
            | Step::Archive(_) => None,
        });
        let folders: BTreeSet<&Path> = tasks.collect();
        if !folders.is_empty() {
            writeln!(f, "{}", Command::new("mkdir").arg("-p").args(folders))?;
        }
        self.stages
            .iter()
            .flatten()
            .try_for_each(|step| step.fmt(f))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(task) => {
                writeln!(f, "# {}", task.title)?;
                match &task.launched {
                    Some(launched) => launched.fmt(f)?,
                    None => task
                        .commands
                        .iter()
                        .try_for_each(|command| writeln!(f, "{command}"))?,
                }
                if let Some(what) = task.finish.what() {
                    let part = files::part(&task.output).into_os_string();
                    writeln!(f, "# {what}, in this process: {}", Quoted(&part))?;
                }
                let rename = Command::new("mv")
                    .arg(files::part(&task.output))
                    .arg(&task.output);
                writeln!(f, "{rename}")
            }
            Self::Extract(extraction) => extraction.fmt(f),
            Self::Artifact(artifact) => artifact.fmt(f),
            Self::Describe(description) => description.fmt(f),
            Self::Take(take) => take.fmt(f),
            Self::Pack(packing) => packing.fmt(f),
            Self::Register(registration) => {
                let output = Quoted(registration.output.as_os_str());
                writeln!(f, "# {}, in this process: {output}", self.title())?;
                let mut images = registration.images.planned.iter();
                images.try_for_each(|image| writeln!(f, "#   {image}"))
            }
            Self::Archive(archive) => {
                writeln!(f, "# {}, in this process", self.title())?;
                writeln!(
                    f,
                    "{}",
                    Command::new("ar")
                        .arg("rcsD")
                        .arg(&archive.library)
                        .args(&archive.objects)
                )
            }
        }
    }
}
