//! Answers of programs to questions about themselves, kept while they are the same programs.
//!
//! A file has the MD5 of the answer in its first line, then the answer.

use crate::files;
use crate::process::command::{Command, CommandError};
use offload_formats_core::md5::{self, Md5};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the answers below a build script's `OUT_DIR`.
pub const ANSWERS: &str = "offload/answers";

/// Answers, in files of one folder.
#[derive(Clone, Debug)]
pub struct Answers {
    folder: PathBuf,
    /// Variables that answers depend on, with their values.
    variables: String,
}

impl Answers {
    /// Returns the answers kept below a build script's `out`.
    #[must_use]
    pub fn below(out: &Path, variables: &str) -> Self {
        Self {
            folder: out.join(ANSWERS),
            variables: variables.to_owned(),
        }
    }

    /// Returns what `command` writes, on standard output and then on standard error; it is started if its answer is not
    /// known.
    ///
    /// # Errors
    ///
    /// When it fails. That is not kept.
    pub fn to(&self, command: &Command) -> Result<String, CommandError> {
        self.accepted(command, |_| true)
    }

    /// The same, but asks again if `accepts` refuses the known answer.
    pub fn accepted(
        &self,
        command: &Command,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<String, CommandError> {
        let path = self.path(command);
        if let Some(known) = kept(&path).filter(|known| accepts(known)) {
            return Ok(known);
        }
        let output = command.run()?;
        let mut text = output.stdout;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &output.stderr;
        // What cannot be kept is asked again.
        let _ = files::write(&path, format!("{}\n{text}", digest(&text)).as_bytes());
        Ok(text)
    }

    fn path(&self, command: &Command) -> PathBuf {
        let mut hash = Md5::new();
        hash.update(files::identity(command.program()));
        hash.update(format!("\0{command}\0{}", self.variables));
        let name = md5::hex(&hash.finalize());
        self.folder.join(name + ".txt")
    }
}

/// Returns the answer in a file: after a power cut the file may lack parts of it, or have zeros in their place.
fn kept(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (start, answer) = text.split_once('\n')?;
    (start == digest(answer)).then(|| answer.to_owned())
}

/// Returns the first line of a file with `answer`.
fn digest(answer: &str) -> String {
    md5::hex(&Md5::digest(answer))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn asks_a_program_once_while_it_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let put = |text: &str| {
            fs::write(
                &program,
                format!("#!/bin/sh\necho x >> {0}.log\n{text}\n", program.display()),
            )
            .unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let starts = || {
            fs::read_to_string(folder.path().join("program.log"))
                .unwrap_or_default()
                .lines()
                .count()
        };
        put("printf one; echo two >&2");
        let command = Command::new(&program);
        let answers = Answers::below(folder.path(), "A=1");
        for _ in 0..2 {
            assert_eq!(answers.to(&command).unwrap(), "one\ntwo\n");
        }
        assert_eq!(starts(), 1);
        let others = Answers::below(folder.path(), "A=2");
        others.to(&command).unwrap();
        answers.to(&command.clone().arg("x")).unwrap();
        assert_eq!(starts(), 3);
        put("echo other; exit 1");
        for _ in 0..2 {
            answers.to(&command).unwrap_err();
        }
        assert_eq!(starts(), 5);
        // What an earlier version kept of a failure.
        fs::write(answers.path(&command), "").unwrap();
        answers.to(&command).unwrap_err();
        assert_eq!(starts(), 6);
    }

    #[test]
    fn asks_again_if_a_kept_answer_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, "#!/bin/sh\necho clang version 22.1\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let command = Command::new(&program);
        let answers = Answers::below(folder.path(), "");
        let path = answers.path(&command);
        let answer = answers.to(&command).unwrap();
        let good = fs::read(&path).unwrap();
        for damaged in [
            vec![0; good.len()],
            good[..good.len() - 3].to_vec(),
            answer.clone().into(),
        ] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(answers.to(&command).unwrap(), answer);
            assert_eq!(fs::read(&path).unwrap(), good);
        }
    }
}
