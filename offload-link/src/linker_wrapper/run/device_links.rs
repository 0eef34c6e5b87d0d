//! Runs the device links in parallel.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;

use offload_build::tools::{Command, jobserver, spirv, without_rustc};
use offload_formats::format::bytes::ReadCache;

use crate::environment::variable;
use crate::files::{Reading, write_pieces};
use crate::linker_wrapper::actions::Actions;
use crate::linker_wrapper::choose::groups::Group;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::options::Jobs;
use crate::linker_wrapper::plan::device_link::DeviceLink;
use crate::linker_wrapper::report::trace::Trace;
use crate::linker_wrapper::run::linked_image;
use crate::linker_wrapper::workplace::Workplace;

/// Runs the links, and returns the files of the images in the order of `links`.
pub(crate) fn run(
    links: &[DeviceLink<'_>],
    workplace: &Workplace,
    jobs: Jobs,
    actions: Actions,
    trace: &Trace,
) -> Result<Vec<PathBuf>, LinkError> {
    let pool = match jobs {
        Jobs::Count(count) => jobserver::Jobs::new(None, count),
        Jobs::Jobserver => jobserver::Jobs::new(
            variable("CARGO_MAKEFLAGS")
                .or_else(|| variable("MAKEFLAGS"))
                .as_deref()
                .and_then(OsStr::to_str),
            1,
        ),
    };
    let results = pool.run(links.iter().collect(), |link| {
        link.run(workplace, actions, trace)
    });
    let (mut images, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(image) => images.push(image),
            Err(error) => errors.push(error),
        }
    }
    match (errors.len(), errors.pop()) {
        (1, Some(error)) => Err(error),
        (_, Some(last)) => Err(LinkError::Several(
            errors.into_iter().chain([last]).collect(),
        )),
        (_, None) => Ok(images),
    }
}

impl DeviceLink<'_> {
    fn run(
        &self,
        workplace: &Workplace,
        actions: Actions,
        trace: &Trace,
    ) -> Result<PathBuf, LinkError> {
        for (path, image) in &self.inputs {
            image.copy_to(path)?;
        }
        let libraries: Vec<_> = env::var_os("LD_LIBRARY_PATH")
            .map(|path| ("LD_LIBRARY_PATH", without_rustc(&path)))
            .into_iter()
            .chain(workplace.variables())
            .collect();
        let translations = self.translations.iter();
        let translations = translations.map(|(image, command)| (Some(*image), command));
        let commands = self.commands.iter().map(|command| (None, command));
        for (text, command) in translations.chain(commands) {
            actions.show(command);
            let _phase = trace.phase("Device link", command);
            let said = command
                .run_in_file(&libraries, &self.beside(".rsp"))
                .map_err(|source| LinkError::DeviceLink {
                    target: match text {
                        Some(image) => format!("{}: {}", self.group.target(), image.from),
                        None => self.group.target(),
                    },
                    source,
                })?;
            if self.shows_output {
                eprint!("{}{}", said.stdout, said.stderr);
            }
        }
        let refused = |problem| LinkError::Image {
            target: self.group.target(),
            problem,
            command: self.commands.last().map(Command::to_string),
        };
        let image = Reading::open(&self.output).map_err(|source| {
            let file = self.output.display();
            refused(format!("cannot read `{file}`: {source}").into())
        })?;
        let Group {
            triple, processor, ..
        } = self.group;
        linked_image::check(&image, self.kind, triple, processor).map_err(refused)?;
        match self.wraps_spirv {
            true => self.wrap(&image),
            false => Ok(self.output.clone()),
        }
    }

    /// Writes the file in which OpenMP's runtime takes SPIR-V, and returns its path.
    fn wrap(&self, module: &ReadCache) -> Result<PathBuf, LinkError> {
        let wrapped = spirv::openmp_image(module, "", "")
            .map_err(|error| LinkError::input(self.output.display(), error))?;
        let path = self.beside(".elf");
        let written = File::create(&path)
            .and_then(|file| write_pieces(&file, &wrapped, std::slice::from_ref(&self.output)));
        written.map_err(|source| LinkError::unwritten(&path, source))?;
        Ok(path)
    }

    /// Returns the path of the image with `extension` added.
    fn beside(&self, extension: &str) -> PathBuf {
        let mut path = self.output.clone().into_os_string();
        path.push(extension);
        path.into()
    }
}
