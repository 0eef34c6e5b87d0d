/* Makes one system call of one program fail, for tests: loaded by LD_PRELOAD.

   FAIL_PROGRAM  file name of the program; in all others, and in its children, nothing happens
   FAIL_FOLDER   calls on files below this folder count
   FAIL_LOG      every call that counts adds a line to this file
   FAIL_AT       number of the call that fails, from 1; 0: none
   FAIL_ERRNO    the error that it fails with
   FAIL_WRITES   if it is set, calls that write, rename, remove and start programs count as well

   Compile with -fno-delete-null-pointer-checks: Rust's library calls statx without a path. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char folder[4096];
static size_t folder_size;
static int log_file = -1;
static int fail_at;
static int fail_errno;
static int has_writes;
static int count;

__attribute__((constructor)) static void start(void) {
  char self[4096];
  ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", self, sizeof self - 1);
  const char *program = getenv("FAIL_PROGRAM");
  const char *below = getenv("FAIL_FOLDER");
  const char *log = getenv("FAIL_LOG");
  if (size <= 0 || !program || !below || !log)
    return;
  self[size] = 0;
  const char *name = strrchr(self, '/');
  if (!name || strcmp(name + 1, program) != 0)
    return;
  unsetenv("LD_PRELOAD");
  unsetenv("FAIL_PROGRAM");
  fail_at = atoi(getenv("FAIL_AT"));
  fail_errno = atoi(getenv("FAIL_ERRNO"));
  has_writes = getenv("FAIL_WRITES") != NULL;
  folder_size = strlen(below);
  if (folder_size >= sizeof folder)
    return;
  memcpy(folder, below, folder_size + 1);
  log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int fails_anywhere(const char *call, const char *path) {
  int number = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
  int fail = number == fail_at;
  char line[8192];
  int size = snprintf(line, sizeof line, "%d %s %s%s\n", number, call, path, fail ? " FAILS" : "");
  if (size > 0)
    syscall(SYS_write, log_file, line, (size_t)size);
  if (fail)
    errno = fail_errno;
  return fail;
}

static int fails(const char *call, const char *path) {
  if (log_file < 0 || strncmp(path, folder, folder_size) != 0 || path[folder_size] != '/')
    return 0;
  return fails_anywhere(call, path);
}

static int fails_at(const char *call, int base, const char *path) {
  char whole[8192];
  if (!path)
    return 0;
  if (path[0] == '/')
    return fails(call, path);
  char folder_of[32];
  snprintf(folder_of, sizeof folder_of, "/proc/self/fd/%d", base);
  if (base == AT_FDCWD)
    strcpy(folder_of, "/proc/self/cwd");
  ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, folder_of, whole, 4096);
  if (size <= 0 || strlen(path) > 4000)
    return 0;
  whole[size] = '/';
  strcpy(whole + size + 1, path);
  return fails(call, whole);
}

static int fails_on(const char *call, int file) {
  char link[32], path[4097];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, path, 4096);
  if (size <= 0)
    return 0;
  path[size] = 0;
  return fails(call, path);
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define MODE(last) mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list list; va_start(list, last); mode = va_arg(list, mode_t); va_end(list); }

int open(const char *path, int flags, ...) {
  REAL(open); MODE(flags)
  return fails_at("open", AT_FDCWD, path) ? -1 : real(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  REAL(open64); MODE(flags)
  return fails_at("open", AT_FDCWD, path) ? -1 : real(path, flags, mode);
}
int openat(int base, const char *path, int flags, ...) {
  REAL(openat); MODE(flags)
  return fails_at("openat", base, path) ? -1 : real(base, path, flags, mode);
}
int openat64(int base, const char *path, int flags, ...) {
  REAL(openat64); MODE(flags)
  return fails_at("openat", base, path) ? -1 : real(base, path, flags, mode);
}
ssize_t read(int file, void *to, size_t size) {
  REAL(read);
  return fails_on("read", file) ? -1 : real(file, to, size);
}
ssize_t pread(int file, void *to, size_t size, off_t at) {
  REAL(pread);
  return fails_on("pread", file) ? -1 : real(file, to, size, at);
}
ssize_t pread64(int file, void *to, size_t size, off64_t at) {
  REAL(pread64);
  return fails_on("pread", file) ? -1 : real(file, to, size, at);
}
off64_t lseek64(int file, off64_t at, int whence) {
  REAL(lseek64);
  return fails_on("lseek", file) ? -1 : real(file, at, whence);
}
int stat64(const char *path, struct stat64 *to) {
  REAL(stat64);
  return fails_at("stat", AT_FDCWD, path) ? -1 : real(path, to);
}
int lstat64(const char *path, struct stat64 *to) {
  REAL(lstat64);
  return fails_at("lstat", AT_FDCWD, path) ? -1 : real(path, to);
}
int fstat64(int file, struct stat64 *to) {
  REAL(fstat64);
  return fails_on("fstat", file) ? -1 : real(file, to);
}
int statx(int base, const char *path, int flags, unsigned mask, struct statx *to) {
  REAL(statx);
  int fail = path && !*path ? fails_on("statx", base) : fails_at("statx", base, path);
  return fail ? -1 : real(base, path, flags, mask, to);
}
DIR *opendir(const char *path) {
  REAL(opendir);
  return fails_at("opendir", AT_FDCWD, path) ? NULL : real(path);
}
struct dirent64 *readdir64(DIR *folder) {
  REAL(readdir64);
  return fails_on("readdir", dirfd(folder)) ? NULL : real(folder);
}
char *realpath(const char *path, char *to) {
  REAL(realpath);
  return fails_at("realpath", AT_FDCWD, path) ? NULL : real(path, to);
}
ssize_t readlink(const char *path, char *to, size_t size) {
  REAL(readlink);
  return fails_at("readlink", AT_FDCWD, path) ? -1 : real(path, to, size);
}
ssize_t write(int file, const void *from, size_t size) {
  REAL(write);
  return has_writes && fails_on("write", file) ? -1 : real(file, from, size);
}
int rename(const char *path, const char *to) {
  REAL(rename);
  return has_writes && fails_at("rename", AT_FDCWD, to) ? -1 : real(path, to);
}
int unlink(const char *path) {
  REAL(unlink);
  return has_writes && fails_at("unlink", AT_FDCWD, path) ? -1 : real(path);
}
int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  return has_writes && fails_at("mkdir", AT_FDCWD, path) ? -1 : real(path, mode);
}
int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]) {
  REAL(posix_spawn);
  if (log_file >= 0 && has_writes && fails_anywhere("spawn", path))
    return fail_errno;
  return real(child, path, actions, attributes, arguments, variables);
}
int posix_spawnp(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]) {
  REAL(posix_spawnp);
  if (log_file >= 0 && has_writes && fails_anywhere("spawn", path))
    return fail_errno;
  return real(child, path, actions, attributes, arguments, variables);
}
