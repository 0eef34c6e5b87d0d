//! Sources with launches, for which neither ROCm nor CUDA is needed; a runtime that records what it is told; and what two
//! versions of a package with these sources tell it.

use std::collections::BTreeMap;

/// For HIP and CUDA.
pub const HEADER: &str = r#"
#ifdef __HIP__
#define NAME(name) __hip##name
#define LAUNCH_KERNEL hipLaunchKernel
#else
#define NAME(name) __cuda##name
#define LAUNCH_KERNEL cudaLaunchKernel
#endif
struct dim3 { unsigned x, y, z; constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {} };
extern "C" {
int NAME(PushCallConfiguration)(dim3, dim3, __SIZE_TYPE__ = 0, void * = 0);
int NAME(PopCallConfiguration)(dim3 *, dim3 *, __SIZE_TYPE__ *, void *);
int LAUNCH_KERNEL(const void *, dim3, dim3, void **, __SIZE_TYPE__, void *);
}
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
"#;

/// Each call is a line: of a registration the number of the fat binary, of a launch all that its address was
/// registered for.
pub const RUNTIME: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define NAME2(prefix, name) __##prefix##name
#define NAME1(prefix, name) NAME2(prefix, name)
#define NAME(name) NAME1(PREFIX, name)
struct wrapper { unsigned magic, version; const unsigned char *image; void *unused; };
static struct { const void *address; const char *name; int binary; } known[99];
static int kernels, count, handles[99];
static FILE *log_file(void) {
  static FILE *file;
  if (!file) { file = fopen(getenv("GPU_LOG"), "a"); setvbuf(file, 0, _IONBF, 0); }
  return file;
}
#define LOG(...) fprintf(log_file(), __VA_ARGS__)
void **NAME(RegisterFatBinary)(struct wrapper *w) {
  LOG("register %d magic %x aligned %d\n", count, w->magic, (unsigned long)w->image % ALIGNMENT == 0);
  return (void **)&handles[count++];
}
void NAME(RegisterFatBinaryEnd)(void *h) {}
/* Host objects of nvcc before 13 call it. */
char NAME(InitModule)(void *h) { return 1; }
void NAME(UnregisterFatBinary)(void *h) { LOG("unregister %d\n", (int)((int *)h - handles)); }
int NAME(RegisterFunction)(void *h, const void *a, char *b, char *c, int limit, void *t, void *u, void *v, void *w, int *x) {
  int binary = (int *)h - handles;
  LOG("function %d %s\n", binary, b);
  known[kernels].address = a; known[kernels].binary = binary; known[kernels++].name = b; return 0;
}
void NAME(RegisterVar)(void *h, void *a, char *b, char *c, int external, unsigned long size, int constant, int global) {
  LOG("variable %d %s %lu\n", (int)((int *)h - handles), b, size);
}
void NAME(RegisterManagedVar)(void) {}
void NAME(RegisterSurface)(void) {}
void NAME(RegisterTexture)(void) {}
static int launch(const void *a) {
  LOG("launch");
  for (int i = 0; i < kernels; i++) if (known[i].address == a) LOG(" %d %s", known[i].binary, known[i].name);
  LOG("\n"); return 0;
}
int NAME(PushCallConfiguration)(void) { return 0; }
int NAME(PopCallConfiguration)(void) { return 0; }
int hipLaunchKernel(const void *a) { return launch(a); }
int cudaLaunchKernel(const void *a) { return launch(a); }
/* As the stubs of nvcc 13 launch; a kernel is its address here. */
int NAME(GetKernel)(const void **kernel, const void *a) { *kernel = a; return 0; }
int NAME(LaunchKernel)(const void *kernel) { return launch(kernel); }
"#;

/// A kernel that each file which uses it instantiates, and a function that one defines.
pub const SHARED: &str = "template <class T> __global__ void TEMPLATE(T *x) { *x += 1; }\n__device__ int twice(int x);\n";

/// A kernel of its own, one that is nobody else's, one that another file instantiates too, and a variable.
pub const SOURCE: &str = r#"
#include "gpu.h"
__device__ int FACTOR = 3;
static __global__ void inner(int *x) { *x = twice(FACTOR); }
__global__ void PLAIN(int *x) { *x = FACTOR; }
void other_launch(int *x);
extern "C" void LAUNCH(int *x) {
  TEMPLATE<<<1, 1>>>(x);
  inner<<<1, 1>>>(x);
  PLAIN<<<1, 1>>>(x);
}
"#;

/// A second file: a device function, and the template again.
pub const HELPER: &str = r#"
#include "gpu.h"
__device__ int twice(int x) { return 2 * x; }
extern "C" void HELPER(int *x) { TEMPLATE<<<1, 1>>>(x); }
"#;

/// What `log` has of two versions, which start each of their kernels once and then `plain` again. `prefix` is `hip` or
/// `cuda`; the images of each version are registered by themselves, or all together.
#[track_caller]
pub fn check(log: &str, prefix: &str, is_complete: bool, what: &str) {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = log.lines().map(words).collect();
    let of = |first: &str| -> Vec<&Vec<String>> {
        lines.iter().filter(|words| words[0] == first).collect()
    };
    let binaries = if is_complete { 2 } else { 1 };
    assert_eq!(of("register").len(), binaries, "{what}: {log}");
    let magic = match prefix {
        "hip" => "48495046",
        _ => "466243b1",
    };
    for (number, words) in of("register").into_iter().enumerate() {
        let expected = format!("register {number} magic {magic} aligned 1");
        assert_eq!(words.join(" "), expected, "{what}");
    }
    assert_eq!(of("unregister").len(), binaries, "{what}: {log}");

    // Each kernel of each version, with the number of its launches; what is a file's own has a name that ends so.
    let mut seen: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let short = |name: &str| {
        let own = name.find(".intern.").or(name.find("__intern__"));
        own.map_or(name.to_owned(), |end| format!("{}*", &name[..end]))
    };
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for words in of("function") {
        let binary: usize = words[1].parse().unwrap();
        seen.insert((binary, short(&words[2])), 0);
        names.insert(words[2].clone(), binary);
    }
    for words in of("launch") {
        // An address that was registered for one kernel; each file that instantiates a template registers it.
        let (first, others) = words[1..].split_at(2);
        assert!(
            others.chunks(2).all(|other| other == first),
            "{what}: {log}"
        );
        let binary: usize = first[0].parse().unwrap();
        *seen.get_mut(&(binary, short(&first[1]))).unwrap() += 1;
    }
    let mut expected = BTreeMap::new();
    for (binary, version) in [(0, "1"), (1, "2")] {
        let (binary, own, inner) = match is_complete {
            true => (binary, "", 1),
            false => (0, version, 2),
        };
        let (plain, scale) = (format!("plain{own}"), format!("scale{own}"));
        expected.insert((binary, "_ZL5innerPi*".to_owned()), inner);
        expected.insert((binary, format!("_Z{}{plain}Pi", plain.len())), 2);
        expected.insert((binary, format!("_Z{}{scale}IiEvPT_", scale.len())), 1);
    }
    assert_eq!(seen, expected, "{what}: {log}");
    // Those of one file only are two kernels, whatever fat binary they are in.
    let inner = names.keys().filter(|name| name.contains("inner"));
    assert_eq!(inner.count(), 2, "{what}: {log}");
    assert_eq!(of("variable").len(), 2, "{what}: {log}");
}
