//! The place of an output while it is written: beside its place under a temporary name, or apart in a file without a name.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::llvm_tool::output::{Output, Style};
use crate::signals::Watch;

/// The places of all outputs, and what removes them on a signal.
#[derive(Default)]
pub(super) struct OutputPlaces {
    pub(super) list: Vec<OutputPlace>,
    /// Starts with the first temporary file. Without it a signal leaves the files, as for want of threads.
    watch: Option<Watch>,
}

/// The place of an output.
pub(super) enum OutputPlace {
    Beside(Beside),
    Apart(Apart),
}

/// A file without a name, to be copied to what cannot be renamed to: standard output, devices, pipes, files in folders
/// where no other can be made.
pub(super) struct Apart {
    file: File,
    /// None is standard output.
    target: Option<PathBuf>,
    /// Empty if it is not a regular file.
    identities: Vec<Identity>,
}

/// A file under a temporary name in the folder of its final name.
pub(super) struct Beside {
    temporary: TempPath,
    /// None if it is opened again when something is written to it: there may be more outputs than a process may have files.
    file: Option<File>,
    /// The final name, links followed.
    target: PathBuf,
    identities: Vec<Identity>,
    /// Its final mode.
    mode: u32,
}

/// Identity of a file, which all of its names share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// The path, links followed.
    Path(PathBuf),
    /// Device and number: hard links.
    File(u64, u64),
}

/// How many files stay open.
const MAX_OPEN: usize = 32;

impl OutputPlaces {
    /// Makes a place for an output.
    pub(super) fn add(&mut self, output: &Output) -> io::Result<()> {
        let path = &output.path;
        let archive = matches!(output.style, Style::Archive);
        if path == Path::new("-") && !archive {
            self.list.push(Apart::place(None, Vec::new())?);
            return Ok(());
        }
        if path.as_os_str().as_bytes().ends_with(b"/") {
            // Never a file: the system says it best.
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
        }
        let existing = fs::metadata(path).ok();
        if let Some(existing) = &existing {
            // Pipes and devices are opened once, when there is something to write.
            if !existing.is_file() && !existing.is_dir() {
                let place = Apart::place(Some(path.clone()), Vec::new())?;
                self.list.push(place);
                return Ok(());
            }
            // Folders, and files that are not ours to write: the system says it best.
            OpenOptions::new().write(true).open(path)?;
        }
        let target = follow(path)?;
        let host = match &output.style {
            Style::Object(host) => fs::metadata(host).ok().filter(fs::Metadata::is_file),
            _ => None,
        };
        let replaced = existing.as_ref();
        let replaced = replaced.map(|file| Identity::File(file.dev(), file.ino()));
        let identities = std::iter::once(Identity::Path(target.clone()));
        let identities: Vec<Identity> = identities.chain(replaced).collect();
        let mode = host.or(existing).map(|file| file.permissions().mode());
        let place = match self.beside(target.clone(), mode) {
            Ok(place) => OutputPlace::Beside(Beside {
                identities,
                ..place
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // Says what is wrong, if something is, before any work is done.
                OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&target)?;
                Apart::place(Some(target), identities)?
            }
            Err(error) => return Err(error),
        };
        self.list.push(place);
        Ok(())
    }

    /// Creates the file, which nobody else can read while it is written if its final mode is known.
    fn beside(&mut self, target: PathBuf, mode: Option<u32>) -> io::Result<Beside> {
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        fs::metadata(folder)?;
        if self.watch.is_none() {
            self.watch = Watch::start().ok();
        }
        let first = if mode.is_some() { 0o600 } else { 0o666 };
        let watch = &self.watch;
        let created = tempfile::Builder::new().make_in(folder, |path| {
            let create = || {
                let mut options = OpenOptions::new();
                options.read(true).write(true).create_new(true);
                options.mode(first).open(path)
            };
            match watch {
                Some(watch) => watch.create(path, create),
                None => create(),
            }
        })?;
        let (file, temporary) = created.into_parts();
        let present = file.metadata()?.permissions().mode() & 0o777;
        if present & 0o600 != 0o600 {
            file.set_permissions(Permissions::from_mode(present | 0o600))?;
        }
        let open = self.list.len() < MAX_OPEN;
        Ok(Beside {
            temporary,
            file: open.then_some(file),
            target,
            identities: Vec::new(),
            // No bit that gives a program other rights: the content is new.
            mode: mode.unwrap_or(present) & 0o777,
        })
    }

    /// Gives all of them their names; `wrong` makes an error of the index of an output.
    pub(super) fn finish<E>(self, wrong: impl Fn(usize, io::Error) -> E) -> Result<(), E> {
        let Self { list, watch } = self;
        for (index, place) in list.into_iter().enumerate() {
            place
                .finish(watch.as_ref())
                .map_err(|error| wrong(index, error))?;
        }
        Ok(())
    }
}

impl OutputPlace {
    pub(super) fn file(&self) -> io::Result<OpenedPlace<'_>> {
        match self {
            Self::Beside(Beside {
                file: None,
                temporary,
                ..
            }) => {
                let file = OpenOptions::new().read(true).write(true).open(temporary)?;
                Ok(OpenedPlace::Again(file))
            }
            Self::Beside(Beside {
                file: Some(file), ..
            })
            | Self::Apart(Apart { file, .. }) => Ok(OpenedPlace::Kept(file)),
        }
    }

    /// Returns the identity of a file; `None` if it is not a regular file.
    pub(super) fn identities(&self) -> &[Identity] {
        match self {
            Self::Beside(place) => &place.identities,
            Self::Apart(place) => &place.identities,
        }
    }

    fn finish(self, watch: Option<&Watch>) -> io::Result<()> {
        match self {
            Self::Beside(Beside {
                temporary,
                file,
                target,
                mode,
                ..
            }) => {
                drop(file);
                fs::set_permissions(&temporary, Permissions::from_mode(mode))?;
                let path = temporary.to_path_buf();
                let rename = || temporary.persist(target).map_err(|error| error.error);
                match watch {
                    Some(watch) => watch.keep(&path, rename),
                    None => rename(),
                }
            }
            Self::Apart(Apart {
                mut file, target, ..
            }) => {
                file.seek(SeekFrom::Start(0))?;
                match target {
                    None => {
                        let mut out = io::stdout().lock();
                        io::copy(&mut file, &mut out)?;
                        out.flush()
                    }
                    Some(path) => {
                        let mut out = OpenOptions::new().write(true).truncate(true).open(path)?;
                        io::copy(&mut file, &mut out).map(drop)
                    }
                }
            }
        }
    }
}

impl Apart {
    fn place(target: Option<PathBuf>, identities: Vec<Identity>) -> io::Result<OutputPlace> {
        Ok(OutputPlace::Apart(Self {
            file: tempfile::tempfile()?,
            target,
            identities,
        }))
    }
}

/// The file of a place, open.
pub(super) enum OpenedPlace<'a> {
    Kept(&'a File),
    Again(File),
}

impl Deref for OpenedPlace<'_> {
    type Target = File;

    fn deref(&self) -> &File {
        match self {
            Self::Kept(file) => file,
            Self::Again(file) => file,
        }
    }
}

/// Follows links, also one whose file does not exist yet, so that no link is replaced: as `open` does.
fn follow(path: &Path) -> io::Result<PathBuf> {
    /// The number of links that Linux follows.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(next) = fs::read_link(&path) else {
            return in_real_folder(&path);
        };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    // The system says that there are too many.
    fs::metadata(&path)?;
    Ok(path)
}

/// The path with all links in its folder followed.
fn in_real_folder(path: &Path) -> io::Result<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path.to_owned());
    };
    let folder = match folder == Path::new("") {
        true => Path::new("."),
        false => folder,
    };
    // Where that fails, the next who uses the folder says why.
    let real = fs::canonicalize(folder);
    Ok(real.unwrap_or_else(|_| folder.to_owned()).join(name))
}
