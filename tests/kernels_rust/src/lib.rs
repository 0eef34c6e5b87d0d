//! Kernels with parts of Rust that a compiler for GPUs may not have.
#![no_std]

use offload_device::{Global, Item, kernel, mul_add, sqrt};

/// Mathematics of the crate `libm`.
#[kernel]
pub fn singles(item: &Item, x: &[f32], y: Global<f32>) {
    let x = x[item.global_index()];
    y.set(item, libm::expf(x) + libm::sinf(x) + libm::powf(x, 1.5));
}

#[kernel]
pub fn doubles(item: &Item, x: &[f64], y: Global<f64>) {
    let x = x[item.global_index()];
    y.set(item, mul_add(libm::exp(x), sqrt(x), libm::log(x)));
}

/// Comparison of slices, for which `core` calls `memcmp`.
#[kernel]
pub fn compares(item: &Item, a: &[u8], b: &[u8], equal: Global<u32>, less: Global<u32>) {
    let start = item.global_index() * 64;
    let (a, b) = (&a[start..start + 64], &b[start..start + 64]);
    equal.atomic_add(0, u32::from(a == b));
    less.atomic_max(0, u32::from(a < b));
}

/// Division of 128-bit integers.
#[kernel]
pub fn divides(item: &Item, x: &[u64], y: Global<u64>) {
    let product = u128::from(x[item.global_index()]) * 0x1234_5678_9abc_def1_1111;
    y.set(item, (product % 1_000_000_007) as u64);
}

#[kernel]
pub fn sorts(item: &Item, x: &[u32], y: Global<[u32; 16]>) {
    let start = item.global_index() * 16;
    let mut own = [0; 16];
    own.copy_from_slice(&x[start..start + 16]);
    own.sort_unstable();
    y.set(item, own);
}

trait Shape {
    fn area(&self) -> f32;
}
struct Square(f32);
struct Circle(f32);
impl Shape for Square {
    fn area(&self) -> f32 {
        self.0 * self.0
    }
}
impl Shape for Circle {
    fn area(&self) -> f32 {
        self.0 * self.0 * core::f32::consts::PI
    }
}

/// Calls through tables of functions.
#[kernel]
pub fn calls(item: &Item, x: &[f32], y: Global<f32>) {
    let x = x[item.global_index()];
    let (square, circle) = (Square(x), Circle(x));
    let shape: &dyn Shape = if x > 1.0 { &square } else { &circle };
    y.set(item, shape.area());
}

#[inline(never)]
fn fibonacci(n: u32) -> u32 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

#[kernel]
pub fn recurses(item: &Item, y: Global<u32>) {
    y.set(item, fibonacci(item.global_index() as u32 % 20));
}

/// Every atomic operation.
#[kernel]
pub fn atomics(item: &Item, u: Global<u32>, i: Global<i32>, w: Global<u64>, l: Global<i64>, f: Global<f32>, d: Global<f64>) {
    let n = item.local_id(0);
    let all = u.atomic_add(n, 1) ^ u.atomic_and(n, 2) ^ u.atomic_or(n, 3) ^ u.atomic_xor(n, 4) ^ u.atomic_min(n, 5);
    u.atomic_store(n, all ^ u.atomic_exchange(n, 6) ^ u.atomic_max(n, 7) ^ u.atomic_load(n));
    i.atomic_store(n, i.atomic_add(n, -1) ^ i.atomic_min(n, 2) ^ i.atomic_max(n, 3) ^ i.atomic_exchange(n, i.atomic_load(n)));
    let wide = w.atomic_add(n, 1) ^ w.atomic_and(n, 2) ^ w.atomic_or(n, 3) ^ w.atomic_xor(n, 4) ^ w.atomic_min(n, 5);
    w.atomic_store(n, wide ^ w.atomic_exchange(n, 6) ^ w.atomic_max(n, 7) ^ w.atomic_load(n));
    l.atomic_store(n, l.atomic_add(n, -1) ^ l.atomic_min(n, 2) ^ l.atomic_max(n, 3) ^ l.atomic_exchange(n, l.atomic_load(n)));
    f.atomic_store(n, f.atomic_add(n, 0.5) + f.atomic_exchange(n, f.atomic_load(n)));
    d.atomic_store(n, d.atomic_add(n, 0.5) + d.atomic_exchange(n, d.atomic_load(n)));
    if u.atomic_compare_exchange(n, 1, 2).is_err() || w.atomic_compare_exchange(n, 1, 2).is_err() {
        u.atomic_add(0, 1);
    }
}
