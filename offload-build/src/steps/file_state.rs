//! The state of a file, by which a later build recognizes its content without reading it.

use std::fmt;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// State of a file: device, inode, size, and the times in nanoseconds of the last write and the last change. Each write gives
/// the file a new time of change, which programs cannot set, and a file in its place has an inode of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileState(String);

impl FileState {
    /// True where the system tells all of it.
    pub(crate) const EXISTS: bool = cfg!(unix);

    /// Two writes within this time may have one time: systems count it in steps of up to 16 milliseconds.
    pub(crate) const MOMENT: Duration = Duration::from_millis(50);

    /// Returns the state of the file of this name; nothing if there is none or the system does not tell.
    pub(crate) fn now(path: &Path) -> Option<Self> {
        Self::of(&fs::metadata(path).ok()?)
    }

    /// Returns the state that a file's metadata describe.
    pub(crate) fn of(data: &Metadata) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let (written, changed) = (data.mtime_nsec(), data.ctime_nsec());
            let file = format!("{:x}:{:x}:{}", data.dev(), data.ino(), data.size());
            let times = format!("{}.{written}:{}.{changed}", data.mtime(), data.ctime());
            Some(Self(format!("{file}:{times}")))
        }
        #[cfg(not(unix))]
        {
            let _ = data;
            None
        }
    }

    /// Tells whether each write after `now`, the time before the metadata were asked for, changes this state.
    pub(crate) fn is_settled(data: &Metadata, now: SystemTime) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            // Some file systems keep whole seconds, or even ones.
            let least = match data.ctime_nsec() {
                0 => Duration::from_secs(3),
                _ => Self::MOMENT,
            };
            let times = [data.modified().ok(), changed(data)];
            let mut ages = times.iter().map(|time| now.duration_since((*time)?).ok());
            ages.all(|age| age.is_some_and(|age| age > least))
        }
        #[cfg(not(unix))]
        {
            let _ = (data, now);
            false
        }
    }

    /// Returns the state that [`Display`](fmt::Display) wrote.
    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the time of a file's last change, if the system tells it: programs set the time of the last write, and not this one.
pub(crate) fn changed(data: &Metadata) -> Option<SystemTime> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let seconds = u64::try_from(data.ctime()).ok()?;
        let nanoseconds = u32::try_from(data.ctime_nsec()).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
    }
    #[cfg(not(unix))]
    {
        let _ = data;
        None
    }
}
