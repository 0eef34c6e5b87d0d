//! Digests of files, as keys of tasks hold them. Those of files that stay as they are are kept for the next build.

use crate::steps::file_state::FileState;
use crate::steps::folder;
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_formats::md5::{self, Md5};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

/// Size in bytes from which reading a file takes longer than to wait until its state tells it from later ones.
const LARGE: u64 = 8 << 20;

/// Digests of file contents, each file read once in a build, and in later builds only if its state is another one.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    /// The file that keeps them; nothing if this build is the only one that needs them.
    file: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Digests of this build; nothing for a file that cannot be read.
    now: HashMap<PathBuf, Option<String>>,
    /// Digests of this build and of the last one, with the state that the file had.
    kept: HashMap<PathBuf, (FileState, String)>,
    /// Number of files that were read.
    #[cfg(test)]
    read: usize,
}

impl Digests {
    /// Returns the digests that an earlier build kept in `file`.
    pub(crate) fn kept_in(file: PathBuf) -> Self {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let line = |line: &str| {
            let (digest, line) = line.split_once(' ')?;
            let (state, path) = line.split_once(' ')?;
            let state = FileState::from_text(state);
            Some((PathBuf::from(path), (state, digest.to_owned())))
        };
        let kept = text.lines().filter_map(line).collect();
        Self {
            file: Some(file),
            known: Mutex::new(Known {
                kept,
                ..Known::default()
            }),
        }
    }

    /// Keeps the digests that this build needed for the next one.
    pub(crate) fn keep(&self) -> Result<(), Error> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let known = self.lock();
        let mut lines = Vec::new();
        for (path, (state, digest)) in &known.kept {
            // A name with a line break is not found again, so its file is read in each build.
            if let Some(path) = known.now.get(path).and(path.to_str()) {
                lines.push(format!("{digest} {state} {path}\n"));
            }
        }
        lines.sort();
        if lines.is_empty() && !file.exists() {
            return Ok(());
        }
        files::write(file, lines.concat().as_bytes()).map_err(error::io(file))
    }

    /// The MD5 of a file's content as it is now, also if it has changed since this build first asked for it.
    pub(crate) fn of_now(&self, path: &Path) -> Option<String> {
        let state = FileState::now(path);
        let kept = self.lock().kept.get(path).map(|(state, _)| state.clone());
        if kept.is_none() || kept != state {
            let below = folder::below(path).unwrap_or_default();
            below.iter().for_each(|path| self.forget(path));
            self.forget(path);
        }
        self.of(path)
    }

    /// The MD5 of a file's content, or of the names and contents in a folder; nothing when it cannot be read. A file that changes during a build has the one that it had when
    /// the build first asked.
    pub(crate) fn of(&self, path: &Path) -> Option<String> {
        let known = self.lock();
        if let Some(digest) = known.now.get(path) {
            return digest.clone();
        }
        let kept = known.kept.get(path).cloned();
        drop(known);
        if let Some((state, digest)) = kept {
            if FileState::now(path).is_some_and(|now| now == state) {
                self.lock()
                    .now
                    .insert(path.to_owned(), Some(digest.clone()));
                return Some(digest);
            }
        }
        let digested = match path.is_dir() {
            true => self.digest_folder(path),
            false => digest_file(path),
        };
        let digested = digested.ok();
        let mut known = self.lock();
        #[cfg(test)]
        {
            known.read += 1;
        }
        known.kept.remove(path);
        let digest = digested.map(|(digest, state)| {
            let kept = state.map(|state| (state, digest.clone()));
            known.kept.extend(kept.map(|kept| (path.to_owned(), kept)));
            digest
        });
        known.now.insert(path.to_owned(), digest.clone());
        digest
    }

    /// Returns the digest of the names and contents in a folder, whose state does not tell them.
    fn digest_folder(&self, path: &Path) -> io::Result<(String, Option<FileState>)> {
        let mut hash = Md5::new();
        for path in folder::below(path)? {
            let content = match path.is_dir() {
                // What is in it follows. Of a link, where it leads counts, too: its folder may be listed under another name.
                true => format!("{:?}", fs::read_link(&path).ok()),
                false => format!("{:?}", self.of(&path)),
            };
            hash.update(format!("{}\0{content}\0", path.display()));
        }
        Ok((hex(hash), None))
    }

    /// Returns what tells an output of this process from any other file of its name: a large one's state, or else its
    /// digest. Nothing if a later file could have the same.
    pub(crate) fn of_output(&self, path: &Path) -> Option<String> {
        let size = fs::metadata(path).ok()?.len();
        let state = || Some(settled(&File::open(path).ok()?).ok()??.to_string());
        match size >= LARGE && FileState::EXISTS {
            true => state(),
            false => self.of(path),
        }
    }

    /// Forgets a file that has been written.
    pub(crate) fn forget(&self, path: &Path) {
        self.lock().now.remove(path);
    }

    /// Returns how many files were read.
    #[cfg(test)]
    pub(crate) fn files_read(&self) -> usize {
        self.lock().read
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Returns the digest of a file, and the state that it had before and after it was read, if that tells it from later
/// ones.
fn digest_file(path: &Path) -> io::Result<(String, Option<FileState>)> {
    // A pipe would be waited for, and a device may have no end.
    if !fs::metadata(path)?.is_file() && path != Path::new("/dev/null") {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::open(path)?;
    let state = settled(&file)?;
    let mut hash = Md5::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => hash.update(
                buffer
                    .get(..count)
                    .expect("a read fills at most the buffer"),
            ),
        }
    }
    let after = FileState::of(&file.metadata()?);
    Ok((
        hex(hash),
        state.filter(|state| after.as_ref() == Some(state)),
    ))
}

/// Returns the state of a file, if that tells it from later ones. For a large file this waits until it does.
fn settled(file: &File) -> io::Result<Option<FileState>> {
    let now = SystemTime::now();
    let data = file.metadata()?;
    if FileState::is_settled(&data, now) {
        return Ok(FileState::of(&data));
    }
    if data.len() < LARGE || !FileState::EXISTS {
        return Ok(None);
    }
    std::thread::sleep(FileState::MOMENT);
    let now = SystemTime::now();
    let data = file.metadata()?;
    let state = FileState::of(&data);
    Ok(state.filter(|_| FileState::is_settled(&data, now)))
}

/// Returns the digest in hexadecimal digits.
pub(crate) fn hex(hash: Md5) -> String {
    md5::hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::FileTimes;
    use std::os::unix::fs::MetadataExt;

    /// A folder for one test.
    struct Bench(tempfile::TempDir);

    impl Bench {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn put(&self, name: &str, text: &str) -> PathBuf {
            let path = self.at(name);
            fs::write(&path, text).unwrap();
            path
        }

        /// Returns the digest of each file, and how many were read, as a later build finds them.
        fn build(&self, paths: &[&PathBuf]) -> (Vec<Option<String>>, usize) {
            let digests = Digests::kept_in(self.at("digests.txt"));
            let found = paths.iter().map(|path| digests.of(path)).collect();
            digests.keep().unwrap();
            (found, digests.files_read())
        }
    }

    fn wait() {
        std::thread::sleep(FileState::MOMENT * 2);
    }

    fn md5(text: &str) -> Option<String> {
        let mut hash = Md5::new();
        hash.update(text);
        Some(hex(hash))
    }

    /// Gives a file the time of its last write that another one has.
    fn set_time(path: &Path, of: &fs::Metadata) {
        let times = FileTimes::new().set_modified(of.modified().unwrap());
        let file = File::options().append(true).open(path).unwrap();
        file.set_times(times).unwrap();
    }

    #[test]
    fn reads_a_file_again_only_when_it_changed() {
        let bench = Bench::new();
        let (one, two) = (bench.put("one", "1"), bench.put("two\n", "2"));
        wait();
        let both = || vec![md5("1"), md5("2")];
        assert_eq!(bench.build(&[&one, &two]), (both(), 2));
        // The name of the other is two lines.
        assert_eq!(bench.build(&[&one, &two]), (both(), 1));
        assert_eq!(bench.build(&[&one]), (vec![md5("1")], 0));
        // A build that did not need a digest does not keep it.
        assert_eq!(bench.build(&[]), (vec![], 0));
        assert_eq!(bench.build(&[&one]), (vec![md5("1")], 1));
        // Whatever is in the file of digests.
        let kept = fs::read_to_string(bench.at("digests.txt")).unwrap();
        for end in 0..kept.len() {
            bench.put("digests.txt", &kept[..end]);
            assert_eq!(bench.build(&[&one]).0, [md5("1")], "{end}");
        }
        fs::remove_file(&one).unwrap();
        assert_eq!(bench.build(&[&one]).0, [None]);
        bench.put("one", "3");
        assert_eq!(bench.build(&[&one]).0, [md5("3")]);
    }

    #[test]
    fn notices_changes_that_keep_size_and_time() {
        let bench = Bench::new();
        let (path, link) = (bench.put("file", "old"), bench.at("link"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        wait();
        let before = fs::metadata(&path).unwrap();
        assert_eq!(bench.build(&[&path, &link]).0, [md5("old"), md5("old")]);
        bench.put("file", "new");
        set_time(&path, &before);
        assert_eq!(bench.build(&[&path, &link]).0, [md5("new"), md5("new")]);
        // Another file in its place, and by the link.
        let other = bench.put("other", "one");
        set_time(&other, &before);
        wait();
        fs::rename(&other, &path).unwrap();
        assert_eq!(bench.build(&[&path, &link]).0, [md5("one"), md5("one")]);
        // Two files whose times are equal, by a link that leads to one of them.
        let times = |path: &PathBuf| {
            let data = fs::metadata(path).unwrap();
            (data.modified().unwrap(), data.ctime(), data.ctime_nsec())
        };
        // New files each time: Linux 6.13 gives those whose times were asked for finer ones.
        let mut pairs = (0..)
            .map(|number| ["one", "two"].map(|text| bench.put(&format!("{text}-{number}"), text)));
        let two = pairs.find(|two| times(&two[0]) == times(&two[1])).unwrap();
        wait();
        for (path, text) in two.iter().zip(["one", "two"]) {
            fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink(path, &link).unwrap();
            assert_eq!(bench.build(&[&link]).0, [md5(text)]);
        }
    }

    #[test]
    fn reads_a_file_again_that_changed_during_a_build() {
        let bench = Bench::new();
        let path = bench.put("file", "old");
        wait();
        let digests = Digests::default();
        assert_eq!(digests.of(&path), md5("old"));
        assert_eq!(
            (digests.of_now(&path), digests.files_read()),
            (md5("old"), 1)
        );
        bench.put("file", "new");
        assert_eq!(digests.of(&path), md5("old"));
        assert_eq!(digests.of_now(&path), md5("new"));
        // Too new to be told from later ones by its state.
        bench.put("file", "end");
        assert_eq!(digests.of_now(&path), md5("end"));
        assert_eq!(digests.of(&path), md5("end"));
        fs::remove_file(&path).unwrap();
        assert_eq!(digests.of_now(&path), None);
    }

    #[test]
    fn keeps_no_digest_of_a_file_that_has_just_been_written() {
        let bench = Bench::new();
        let path = bench.put("file", "0000");
        let before = fs::metadata(&path).unwrap();
        // Some of these writes have the time of the one before.
        for number in 0..500 {
            let text = format!("{number:04}");
            bench.put("file", &text);
            set_time(&path, &before);
            assert_eq!(bench.build(&[&path]), (vec![md5(&text)], 1));
        }
        wait();
        assert_eq!(bench.build(&[&path]).0, [md5("0499")]);
        assert_eq!(bench.build(&[&path]), (vec![md5("0499")], 0));
        // Whole seconds are all that some file systems keep; a time to come tells nothing.
        let later = SystemTime::now() + std::time::Duration::from_secs(3600);
        let file = File::options().append(true).open(&path).unwrap();
        file.set_times(FileTimes::new().set_modified(later))
            .unwrap();
        wait();
        assert_eq!(bench.build(&[&path]).1, 1);
        assert_eq!(bench.build(&[&path]).1, 1);
    }

    #[test]
    fn digests_a_folder_by_what_is_in_it() {
        let bench = Bench::new();
        let folder = bench.at("folder");
        fs::create_dir_all(folder.join("inner")).unwrap();
        bench.put("folder/one", "1");
        bench.put("folder/inner/two", "2");
        // A circle.
        std::os::unix::fs::symlink(&folder, folder.join("link")).unwrap();
        let digests = Digests::default();
        let mut found = vec![digests.of_now(&folder).unwrap()];
        assert_eq!(digests.of_now(&folder).as_ref(), found.last());
        bench.put("folder/inner/two", "3");
        assert_eq!(digests.of(&folder).as_ref(), found.last());
        found.push(digests.of_now(&folder).unwrap());
        fs::rename(folder.join("one"), folder.join("inner/one")).unwrap();
        found.push(digests.of_now(&folder).unwrap());
        fs::create_dir(folder.join("empty")).unwrap();
        found.push(digests.of_now(&folder).unwrap());
        // A link to a folder that is listed under its own name.
        let alias = folder.join("alias");
        for leads_to in ["inner", "empty"] {
            std::os::unix::fs::symlink(leads_to, &alias).unwrap();
            found.push(digests.of_now(&folder).unwrap());
            fs::remove_file(&alias).unwrap();
        }
        // By a link to a folder elsewhere, and by one that leads nowhere.
        fs::create_dir(bench.at("elsewhere")).unwrap();
        let elsewhere = bench.put("elsewhere/three", "3");
        std::os::unix::fs::symlink(bench.at("elsewhere"), folder.join("far")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.join("lost")).unwrap();
        found.push(digests.of_now(&folder).unwrap());
        fs::write(elsewhere, "4").unwrap();
        found.push(digests.of_now(&folder).unwrap());
        let different: std::collections::BTreeSet<_> = found.iter().collect();
        assert_eq!(different.len(), found.len());
    }

    #[test]
    fn recognizes_large_outputs_without_reading_them() {
        let bench = Bench::new();
        let path = bench.put("image", "one");
        let grow = |path: &Path| {
            let file = File::options().append(true).open(path).unwrap();
            file.set_len(LARGE).unwrap();
        };
        grow(&path);
        let digests = Digests::default();
        let first = digests.of_output(&path).unwrap();
        assert_eq!(digests.of_output(&path).as_ref(), Some(&first));
        assert_eq!(digests.files_read(), 0);
        // The digest of a large file is kept, however new the file is.
        grow(&bench.put("new", "new"));
        assert_eq!(bench.build(&[&bench.at("new")]).1, 1);
        assert_eq!(bench.build(&[&bench.at("new")]).1, 0);
        let before = fs::metadata(&path).unwrap();
        bench.put("image", "two");
        grow(&path);
        set_time(&path, &before);
        assert_ne!(digests.of_output(&path), Some(first));
        // A small one is read.
        let small = bench.put("small", "small");
        assert_eq!(digests.of_output(&small), md5("small"));
        fs::remove_file(&path).unwrap();
        assert_eq!(digests.of_output(&path), None);
    }
}
