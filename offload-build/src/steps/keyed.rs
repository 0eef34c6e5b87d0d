//! A step of this process that is executed only when something has changed.
//!
//! Beside its first output lies `<output>.key`: the digest of what the step does and by which program, then a line for each
//! output and each file that was read. In `<output>.messages` are warnings.

use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::key::{KeyFiles, is_older};
use crate::steps::step::{Done, Made, Step};
use offload_build_core::error;
use offload_build_core::files;
use offload_formats::md5::{self, Md5};
use std::path::PathBuf;
use std::time::SystemTime;

/// Executes a step only when something has changed. All that decides its outputs is in its value, or in the inputs that
/// [`Step::made`] names.
pub(crate) fn execute(step: &dyn Step, digests: &Digests) -> Result<Done, Failure> {
    let key = KeyedFiles::of(step).zip(recipe(step));
    let Some((key, recipe)) = key else {
        return step.execute(digests);
    };
    if let Some(messages) = key.fresh(&recipe, digests) {
        return Ok(Done {
            fresh: true,
            messages,
            ..Done::default()
        });
    }
    for path in [&key.key.key, &key.key.messages] {
        files::remove(path).map_err(error::io(path))?;
    }
    key.outputs.iter().for_each(|path| digests.forget(path));
    // The key has the inputs as they were before. One that changed meanwhile may be the one that was read, or not.
    let started = SystemTime::now();
    let inputs = key.inputs.iter();
    inputs.for_each(|path| drop(digests.of_now(path)));
    let done = step.execute(digests)?;
    let mut inputs = key.inputs.iter();
    let lines = match inputs.all(|path| is_older(path, started)) {
        true => key.lines(digests),
        false => None,
    };
    key.key.keep_messages(&done.messages)?;
    if let Some(lines) = lines {
        key.key.write(&recipe, &lines)?;
    }
    Ok(done)
}

/// Files that a step writes and reads.
struct KeyedFiles {
    outputs: Vec<PathBuf>,
    inputs: Vec<PathBuf>,
    key: KeyFiles,
}

impl KeyedFiles {
    fn of(step: &dyn Step) -> Option<Self> {
        let Made {
            outputs, inputs, ..
        } = step.made();
        Some(Self {
            key: KeyFiles::of(outputs.first()?),
            outputs,
            inputs,
        })
    }

    /// Returns a line for each file; nothing if one is missing, or cannot be recognized later.
    fn lines(&self, digests: &Digests) -> Option<String> {
        let mut text = String::new();
        for path in &self.outputs {
            text += &format!("{} {}\n", digests.of_output(path)?, path.display());
        }
        for path in &self.inputs {
            text += &format!("{} {}\n", digests.of(path)?, path.display());
        }
        Some(text)
    }

    /// Returns the warnings of the step if its outputs are those that it would write.
    fn fresh(&self, recipe: &str, digests: &Digests) -> Option<String> {
        let kept = self.key.lines(recipe)?;
        match self.lines(digests)? == kept {
            true => self.key.messages(),
            false => None,
        }
    }
}

/// Returns a digest of how the outputs are made: the step, and the program that does it, which is this one and too large to be
/// read.
fn recipe(step: &dyn Step) -> Option<String> {
    let program = files::identity(&std::env::current_exe().ok()?);
    let text = format!("{program}\0{step:?}");
    Some(md5::hex(&Md5::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Copies a file and counts how often.
    #[derive(Debug)]
    struct Copy {
        suffix: &'static str,
        folder: PathBuf,
        count: Count,
    }

    /// A number that does not decide what is made.
    #[derive(Clone, Default)]
    struct Count(Arc<AtomicUsize>);

    impl fmt::Debug for Count {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            Ok(())
        }
    }

    impl Step for Copy {
        fn title(&self) -> String {
            String::new()
        }

        fn show(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            Ok(())
        }

        fn execute(&self, _: &Digests) -> Result<Done, Failure> {
            self.count.0.fetch_add(1, Ordering::Relaxed);
            let input = self.folder.join("input");
            let text = fs::read_to_string(&input).map_err(error::io(&input))?;
            if text == "changes" {
                fs::write(&input, "changed").unwrap();
            }
            // Whoever changed it has undone that.
            if text == "undone" {
                std::thread::sleep(std::time::Duration::from_millis(20));
                fs::write(&input, &text).unwrap();
            }
            for name in ["output", "other"] {
                let path = self.folder.join(name);
                files::write(&path, (text.clone() + self.suffix).as_bytes())
                    .map_err(error::io(&path))?;
            }
            Ok(Done::with_warning((text == "warns").then_some(text)))
        }

        fn made(&self) -> Made {
            let at = |name: &str| self.folder.join(name);
            Made::in_process(
                String::new(),
                vec![at("output"), at("other")],
                vec![at("input")],
            )
        }
    }

    #[test]
    fn executes_a_step_again_when_something_changed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let count = Count::default();
        let build = |suffix: &'static str| {
            let step = Copy {
                suffix,
                folder: folder.path().to_owned(),
                count: count.clone(),
            };
            let digests = Digests::kept_in(at("digests.txt"));
            let done = super::execute(&step, &digests);
            digests.keep().unwrap();
            let messages = done.map(|done| done.messages).ok();
            (count.0.swap(0, Ordering::Relaxed), messages)
        };
        let put = |name: &str, text: &str| {
            fs::write(at(name), text).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        let quiet = || Some(String::new());
        put("input", "one");
        assert_eq!(build(""), (1, quiet()));
        assert_eq!(build(""), (0, quiet()));
        // An input, an output, and what the step does.
        put("input", "two");
        assert_eq!(build(""), (1, quiet()));
        assert_eq!(build(""), (0, quiet()));
        for name in ["output", "other"] {
            fs::remove_file(at(name)).unwrap();
            assert_eq!(build(""), (1, quiet()), "{name}");
            fs::write(at(name), "cut").unwrap();
            assert_eq!(build(""), (1, quiet()), "{name}");
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "two");
            assert_eq!(build(""), (0, quiet()), "{name}");
        }
        assert_eq!(build("!"), (1, quiet()));
        assert_eq!(build(""), (1, quiet()));
        assert_eq!(fs::read_to_string(at("other")).unwrap(), "two");
        // A warning is repeated while it holds.
        put("input", "warns");
        let warning = Some("warning: warns\n".to_owned());
        assert_eq!(build(""), (1, warning.clone()));
        assert_eq!(build(""), (0, warning));
        // A failure leaves no key, nor does an input that changes meanwhile.
        fs::remove_file(at("input")).unwrap();
        assert_eq!(build(""), (1, None));
        put("input", "changes");
        assert_eq!(build(""), (1, quiet()));
        assert_eq!(build(""), (1, quiet()));
        assert_eq!(fs::read_to_string(at("output")).unwrap(), "changed");
        put("input", "undone");
        assert_eq!(build(""), (1, quiet()));
        assert_eq!(build(""), (1, quiet()));
        put("input", "changed");
        assert_eq!(build(""), (1, quiet()));
        for cut in ["", "0", "0\n"] {
            put("output.key", cut);
            assert_eq!(build(""), (1, quiet()));
        }
    }
}
