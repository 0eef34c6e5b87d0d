//! Kernels in C with OpenMP target regions, called from Rust.

/// Device images of this package, made by `build.rs`.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

#[repr(C)]
struct Vector {
    data: *mut f64,
    count: usize,
}

unsafe extern "C" {
    fn weighted_sum(weight: f64, x: *const f64, count: usize) -> f64;
    fn double_all(v: *mut Vector);
}

/// Computes `y = a * x + y`. Returns true if the kernel ran on a device.
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) -> bool {
    unsafe extern "C" {
        fn saxpy(a: f32, x: *const f32, y: *mut f32, count: usize) -> i32;
    }
    assert_eq!(x.len(), y.len());
    // SAFETY: both point to `x.len()` elements, of which the function writes those of `y`.
    unsafe { saxpy(a, x.as_ptr(), y.as_mut_ptr(), x.len()) != 0 }
}

/// The sum of `weight * x[i]`.
pub fn sum(weight: f64, x: &[f64]) -> f64 {
    // SAFETY: `x` has `x.len()` elements, which the function reads.
    unsafe { weighted_sum(weight, x.as_ptr(), x.len()) }
}

/// Doubles every element.
pub fn double(x: &mut [f64]) {
    let mut vector = Vector {
        data: x.as_mut_ptr(),
        count: x.len(),
    };
    // SAFETY: the vector describes `x`, of which the function writes every element.
    unsafe { double_all(&raw mut vector) }
}

/// Runs every kernel and returns the number of wrong results, for programs in other languages.
#[unsafe(no_mangle)]
pub extern "C" fn openmp_saxpy_check() -> i32 {
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut y = vec![1.0; 1000];
    let on_device = saxpy(2.0, &x, &mut y);
    let mut wrong = i32::from(!on_device);
    wrong += i32::from((0..1000).any(|i| y[i] != 2.0 * i as f32 + 1.0));
    let mut values: Vec<f64> = (1..=100).map(f64::from).collect();
    wrong += i32::from(sum(3.0, &values) != 15150.0);
    double(&mut values);
    wrong + i32::from(sum(1.0, &values) != 10100.0)
}
