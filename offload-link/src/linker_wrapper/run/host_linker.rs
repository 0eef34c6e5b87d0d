//! Runs the host linker.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::ExitStatus;

use offload_build::tools::Command;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::installed::host_linker::process;
use crate::linker_wrapper::temporaries::Temporaries;
use crate::options::response_file::Quoting;
use crate::platform;

/// Execs the host linker, or runs it if its command line is longer than the kernel accepts. Returns the exit status.
pub(crate) fn become_or_run(command: &Command, quoting: Quoting) -> Result<u8, LinkError> {
    let source = match platform::become_program(&mut process(command)) {
        Ok(status) => return Ok(code(status)),
        Err(source) => source,
    };
    if source.kind() != ErrorKind::ArgumentListTooLong {
        return Err(start_error(command, source));
    }
    run(command, quoting, &Temporaries::default()).map(code)
}

/// Runs the host linker. A command line longer than the kernel accepts goes into a response file, which every host
/// linker and compiler driver reads.
pub(crate) fn run(
    command: &Command,
    quoting: Quoting,
    files: &Temporaries,
) -> Result<ExitStatus, LinkError> {
    let start = |command: &Command| {
        let mut started = process(command);
        if let Some(folder) = files.existing() {
            started.env("TMPDIR", folder);
        }
        started.status()
    };
    let result = start(command);
    if !matches!(&result, Err(error) if error.kind() == ErrorKind::ArgumentListTooLong) {
        return result.map_err(|source| start_error(command, source));
    }
    let mut file = OsString::from("@");
    file.push(files.response_file(&quoting.quote(command.arguments()))?);
    let short = Command::new(command.program()).arg(file);
    start(&short).map_err(|source| start_error(&short, source))
}

/// Returns the exit status like a shell.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| platform::signal(status).map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn start_error(command: &Command, source: io::Error) -> LinkError {
    LinkError::Start {
        program: PathBuf::from(command.program()),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn writes_a_line_that_the_kernel_does_not_take_into_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let linker = dir.path().join("linker");
        let out = dir.path().join("out");
        let body = format!("#!/bin/sh\ncat \"${{1#@}}\" > '{}'\n", out.display());
        fs::write(&linker, body).unwrap();
        fs::set_permissions(&linker, fs::Permissions::from_mode(0o755)).unwrap();
        // Linux limits one argument to 128 KiB.
        let args = ["a b".to_owned(), "x".repeat(200_000)].map(OsString::from);
        let command = Command::new(&linker).args(args.clone());
        let files = Temporaries::default();
        let status = run(&command, Quoting::Gnu, &files).unwrap();
        assert!(status.success());
        assert_eq!(fs::read(out).unwrap(), Quoting::Gnu.quote(&args));
    }
}
