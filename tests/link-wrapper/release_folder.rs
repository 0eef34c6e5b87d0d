//! A folder with our tool under its names, and an LLVM that makes objects with images.

use crate::support;

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use support::folder::Folder;
use support::{run, tool};

pub(super) struct ReleaseFolder {
    folder: Folder,
    pub(super) release: u32,
    /// Folder with the release's programs.
    pub(super) bin: PathBuf,
}

impl Deref for ReleaseFolder {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl ReleaseFolder {
    pub(super) fn new(release: u32) -> Option<Self> {
        let wrapper = tool(&format!("llvm{release}"), &["clang-linker-wrapper"])?;
        let bin = wrapper.parent()?.to_owned();
        let folder = Folder::new();
        for name in ["tmp", "bin"] {
            fs::create_dir(folder.path(name)).unwrap();
        }
        let ours = env!("CARGO_BIN_EXE_offload-link");
        for name in ["clang-linker-wrapper", "offload-ld"] {
            symlink(ours, folder.path("bin").join(name)).unwrap();
        }
        // Beside its own clang, as LLVM's tool is.
        symlink(bin.join("clang"), folder.path("bin/clang")).unwrap();
        // No CUDA, as far as looking goes.
        for name in ["ptxas", "nvlink", "fatbinary"] {
            folder.script(format!("cuda/bin/{name}"), "exit 1");
        }
        folder.write("host.c", "int main(void) { return 0; }\n");
        Some(Self {
            folder,
            release,
            bin,
        })
    }

    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.folder.command(program);
        command
            .env("TMPDIR", self.path("tmp"))
            .env_remove("OFFLOAD_LINK_REPORT")
            .env_remove("OFFLOAD_LINK_ACTIVE")
            .env_remove("OFFLOAD_LLVM")
            .env_remove("CUDA_PATH");
        command
    }

    pub(super) fn llvm(&self, name: &str) -> Command {
        self.command(self.bin.join(name))
    }

    /// Makes a file with images, each given as for `--image=` of the packager.
    pub(super) fn pack(&self, name: &str, images: &[impl Display]) {
        let packager = match self.release {
            ..=20 => "clang-offload-packager",
            _ => "llvm-offload-binary",
        };
        let images = images.iter().map(|image| format!("--image={image}"));
        run(self.llvm(packager).args(["-o", name]).args(images));
    }

    /// Makes a host object with images, with more options of clang.
    pub(super) fn embed(&self, name: &str, images: &[impl Display], options: &[&str]) {
        self.pack("images.bin", images);
        let embed = [
            "-Xclang",
            "-fembed-offload-object=images.bin",
            "-c",
            "host.c",
        ];
        run(self
            .llvm("clang")
            .args(embed)
            .args(options)
            .args(["-o", name]));
    }
}
