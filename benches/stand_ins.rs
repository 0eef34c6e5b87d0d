//! Programs that only copy a file, in the place of compilers and linkers: what is measured is who starts them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::folder::run;

/// What makes them, and real images.
pub(crate) const CLANG: &str = "/usr/bin/clang-22";

/// LLVM's linker wrapper.
pub(crate) const LLVM: &str = "/usr/lib/llvm-22/bin/clang-linker-wrapper";

/// Copies a file to where its `-o` or `-output=` says, which may be in a response file.
const STAND_IN: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
static int copy(const char *to) {
  int in = open(getenv("STAND_IN_IMAGE"), O_RDONLY);
  int out = open(to, O_CREAT | O_TRUNC | O_WRONLY, 0777);
  struct stat status;
  if (in < 0 || out < 0 || fstat(in, &status)) return 1;
  for (off_t at = 0; at < status.st_size;)
    if (sendfile(out, in, &at, status.st_size - at) <= 0) return 1;
  return 0;
}
static const char *output(const char *argument, const char *next) {
  return !strcmp(argument, "-o") ? next
         : !strncmp(argument, "-output=", 8) ? argument + 8 : 0;
}
static int read_file(const char *path) {
  struct stat status;
  int in = open(path, O_RDONLY);
  if (in < 0 || fstat(in, &status)) return 1;
  char *text = calloc(1, status.st_size + 1);
  for (off_t at = 0; at < status.st_size;) {
    ssize_t count = read(in, text + at, status.st_size - at);
    if (count <= 0) return 1;
    at += count;
  }
  for (char *word = strtok(text, "\" \n"); word;) {
    char *next = strtok(0, "\" \n");
    const char *to = output(word, next);
    if (to && copy(to)) return 1;
    word = next;
  }
  return 0;
}
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *to = output(argv[i], argv[i + 1]);
    if (argv[i][0] == '@' && read_file(argv[i] + 1)) return 1;
    if (to && copy(to)) return 1;
  }
  return 0;
}
"#;

/// Makes them in a new folder. LLVM's tool looks beside itself for the others, ours in `PATH`.
pub(crate) fn make(folder: &Path) {
    fs::create_dir(folder).expect("a folder");
    let source = folder.join("stand_in.c");
    fs::write(&source, STAND_IN).expect("a source");
    let mut clang = Command::new(CLANG);
    clang
        .args(["-O2", "-static", "-o"])
        .arg(folder.join("clang"));
    run(clang.arg(&source));
    for name in ["clang-22", "clang-offload-bundler", "ld.lld"] {
        symlink("clang", folder.join(name)).expect("a link");
    }
    // Like an installed `ld`: its file's name tells which linker it is.
    fs::copy(folder.join("clang"), folder.join("ld.bfd")).expect("a linker");
    symlink("ld.bfd", folder.join("ld")).expect("a link");
    fs::copy(LLVM, folder.join("clang-linker-wrapper")).expect("LLVM's tool");
}

/// What a device linker makes: its machine is looked at.
pub(crate) fn image(folder: &Path, target: &[&str]) -> PathBuf {
    let image = folder.join("image");
    let source = folder.join("empty.c");
    fs::write(&source, "int empty;\n").expect("a source");
    let mut clang = Command::new(CLANG);
    run(clang.args(target).arg(source).arg("-o").arg(&image));
    image
}

/// For GPUs of AMD.
pub(crate) const GFX90A: &[&str] = &["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"];
