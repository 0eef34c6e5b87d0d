//! Files that `cargo offload prune` writes: what they have of the old ones, and what a signal leaves.

use std::fs::{self, Permissions};
use std::num::NonZeroU64;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use offload_formats::format::bundle::{self, BundleImage};
use rustix::fs::{XattrFlags, getxattr, setxattr};

use crate::prune::{folder, prune, pruned, unit};
use crate::support::{DEFAULT_SIGNALS, run};

const PRUNE: [&str; 2] = ["offload", "prune"];

#[test]
fn keeps_what_users_set_in_place_and_no_rights_elsewhere() {
    let folder = folder();
    fs::create_dir(folder.path("tree")).unwrap();
    folder.write("tree/units", unit(1));
    folder.write("tree/text", "no device code");
    let attribute = "user.origin";
    let mut has_attributes = false;
    for name in ["tree/units", "tree/text"] {
        let path = folder.path(name);
        // Only the administrator may give files away.
        let _ = chown(&path, Some(1000), Some(1000));
        fs::set_permissions(&path, Permissions::from_mode(0o6751)).unwrap();
        let set = setxattr(&path, attribute, b"build 7", XattrFlags::empty());
        has_attributes = set.is_ok();
    }
    let state = |name: &str| {
        let found = fs::metadata(folder.path(name)).unwrap();
        (found.uid(), found.gid(), found.mode() & 0o7777)
    };
    let before = state("tree/units");
    let own = state("main.c");
    run(Command::new("mkfifo").arg(folder.path("tree/pipe")));
    let output = prune(&folder, &["--keep=gfx1100", "-r", "tree", "-o", "new"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let warning = "warning: tree/pipe: is not a regular file, and is not copied\n";
    assert!(output.status.success() && said.contains(warning), "{said}");
    assert!(!folder.path("new/pipe").exists());
    pruned(&folder, &["--keep=gfx1100", "tree/units", "-o", "alone"]);
    for name in ["new/units", "new/text", "alone"] {
        assert_eq!(state(name), (own.0, own.1, 0o751), "{name}");
    }
    assert!(fs::read(folder.path("new/text")).unwrap() == b"no device code");
    pruned(&folder, &["--keep=gfx1100", "-r", "tree", "--in-place"]);
    assert!(
        fs::read(folder.path("tree/units")).unwrap() == fs::read(folder.path("alone")).unwrap()
    );
    assert_eq!(state("tree/units"), before);
    assert_eq!(before.2, 0o6751);
    if has_attributes {
        let mut value = [0; 20];
        let size = getxattr(folder.path("tree/units"), attribute, &mut value[..]);
        assert_eq!(&value[..size.unwrap()], b"build 7");
    }
}

#[test]
fn leaves_nothing_after_a_signal() {
    let folder = folder();
    let image = vec![7; 150 << 20];
    let image = |id| BundleImage { id, image: &image };
    let images = [
        "hip-amdgcn-amd-amdhsa--gfx906",
        "hip-amdgcn-amd-amdhsa--gfx90a",
    ]
    .map(image);
    // The first file is small: the signal comes after it is complete.
    fs::create_dir(folder.path("tree")).unwrap();
    let large = bundle::to_bytes(&images, NonZeroU64::MIN).unwrap();
    folder.write("tree/large", large);
    folder.write(
        "tree/a",
        bundle::to_bytes(
            &images.map(|image| BundleImage {
                image: b"",
                ..image
            }),
            NonZeroU64::MIN,
        )
        .unwrap(),
    );
    let out = folder.path("out");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&out).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let is_writing = || {
        let names = names();
        names.iter().any(|name| name == "a") && names.len() == 2
    };
    // A fast machine may be done before the signal comes.
    let is_ended = (0..20).any(|_| {
        let _ = fs::remove_dir_all(&out);
        let mut prune = Command::new("env");
        prune.args([DEFAULT_SIGNALS, env!("CARGO_BIN_EXE_cargo-offload")]);
        prune
            .args(PRUNE)
            .args(["--keep=gfx906", "-r", "tree", "-o", "out"]);
        let mut prune = prune
            .current_dir(folder.root())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !is_writing() && prune.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let kill = Command::new("kill")
            .args(["-TERM", &prune.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let ended = prune.wait().unwrap();
        if ended.success() {
            assert_eq!(names(), ["a", "large"]);
            return false;
        }
        assert_eq!(ended.signal(), Some(15), "{ended}");
        assert_eq!(names(), ["a"]);
        true
    });
    assert!(is_ended, "no signal came in time");
}
