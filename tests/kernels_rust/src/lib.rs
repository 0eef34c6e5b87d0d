//! Kernels with parts of Rust that a compiler for GPUs may not have.
#![no_std]
#![deny(warnings)]
#![forbid(missing_docs, unused_imports, nonstandard_style, improper_ctypes_definitions)]

use offload_device::{Global, Item, kernel, mul_add, sqrt};

/// Mathematics of the crate `libm`.
#[kernel]
pub fn singles(item: &Item, x: &[f32], y: Global<f32>) {
    let x = x[item.global_index()];
    y.set(item, libm::expf(x) + libm::sinf(x) + libm::powf(x, 1.5));
}

/// Mathematics of 64 bits.
#[kernel]
pub fn doubles(item: &Item, x: &[f64], y: Global<f64>) {
    let x = x[item.global_index()];
    y.set(item, mul_add(libm::exp(x), sqrt(x), libm::log(x)));
}

/// A grid of one dimension: the index is one product and one sum.
#[kernel]
pub fn lines(item: &Item<(), 1>, x: &[f32], y: Global<f32>) {
    let i = item.global_index();
    if i < y.len() {
        y.set(item, x[i] * x[i]);
    }
}

/// Comparison of slices, for which `core` calls `memcmp`.
#[kernel]
pub fn compares(item: &Item, a: &[u8], b: &[u8], equal: Global<u32>, less: Global<u32>) {
    let start = item.global_index() * 64;
    let (a, b) = (&a[start..start + 64], &b[start..start + 64]);
    equal.atomic_add(0, u32::from(a == b));
    less.atomic_max(0, u32::from(a < b));
}

/// Text that ends with a zero byte, for which `core` calls `strlen`.
#[kernel]
pub fn texts(item: &Item, texts: &[[u8; 16]], sizes: Global<u64>) {
    let text = &texts[item.global_index()];
    if text[15] == 0 {
        // SAFETY: the last byte is zero.
        let text = unsafe { core::ffi::CStr::from_ptr(text.as_ptr().cast()) };
        sizes.set(item, text.count_bytes() as u64);
    }
}

/// Division of 128-bit integers.
#[kernel]
pub fn divides(item: &Item, x: &[u64], y: Global<u64>) {
    let product = u128::from(x[item.global_index()]) * 0x1234_5678_9abc_def1_1111;
    y.set(item, (product % 1_000_000_007) as u64);
}

/// Arrays of a work-item.
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

fn threads() -> f32 {
    0.5
}

fn body(x: f32) -> f32 {
    x * threads()
}

/// Calls through tables of functions, and functions with names that an expansion might use.
#[kernel(threads = 64)]
pub fn calls(item: &Item, x: &[f32], y: Global<f32>) {
    let x = body(x[item.global_index()]) + threads();
    let (square, circle) = (Square(x), Circle(x));
    let shape: &dyn Shape = if x > 1.0 { &square } else { &circle };
    y.set(item, shape.area());
}

#[inline(never)]
fn fibonacci(n: u32) -> u32 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

/// Recursion.
#[kernel]
#[deprecated(note = "the stack has no limit")]
#[must_use]
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

/// A row of a sparse matrix for each workgroup, whose work-items all take the same branches. LLVM 22 fails for gfx1100 if such a
/// kernel has several traps.
#[kernel]
pub fn rows(item: &Item<(), 1>, starts: &[u32], columns: &[u32], x: &[u32], y: Global<u32>) {
    let row = item.group_id(0);
    let mut sum = 0;
    for i in starts[row] as usize..starts[row + 1] as usize {
        sum += x[columns[i] as usize];
    }
    y.atomic_store(row, sum);
}

/// Random numbers of a counter. LLVM 22 generates no code of this kernel for gfx1100 before the device's functions are in it.
#[kernel]
pub fn draws(item: &Item, seed: u64, rounds: u32, inside: Global<u64>) {
    let mut count = 0;
    for round in 0..rounds {
        let drawn = philox([item.global_index() as u32, round, 0, 0], [seed as u32, (seed >> 32) as u32]);
        for point in drawn.chunks_exact(2) {
            let [x, y] = [point[0], point[1]].map(|word| (word >> 8) as f32 / 16_777_216.0);
            count += u64::from(x * x + y * y < 1.0);
        }
    }
    inside.atomic_add(0, count);
}

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [a, b] = [0xd251_1f53 * u64::from(counter[0]), 0xcd9e_8d57 * u64::from(counter[2])];
        counter = [(b >> 32) as u32 ^ counter[1] ^ key[0], b as u32, (a >> 32) as u32 ^ counter[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// Kernels with the same instructions: each has a descriptor.
#[kernel]
pub fn adds_signed(item: &Item, x: &[i16], y: Global<i16>) {
    y.set(item, x[item.global_index()].wrapping_add(1));
}

/// The same for unsigned numbers.
#[kernel]
pub fn adds_unsigned(item: &Item, x: &[u16], y: Global<u16>) {
    y.set(item, x[item.global_index()].wrapping_add(1));
}
