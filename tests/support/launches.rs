//! What sources with launches need of the vendors' headers, declared here: neither ROCm nor CUDA is needed then.

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
int NAME(PushCallConfiguration)(dim3, dim3, unsigned long = 0, void * = 0);
int NAME(PopCallConfiguration)(dim3 *, dim3 *, unsigned long *, void *);
int LAUNCH_KERNEL(const void *, dim3, dim3, void **, unsigned long, void *);
}
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
"#;
