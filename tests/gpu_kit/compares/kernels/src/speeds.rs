//! Kernels that `speeds.cpp` has in C++, step by step the same.

use offload_device::{Global, Item, kernel, mul_add};

/// Rows and columns of a tile of [`matmul`].
const TILE: usize = 16;

/// Work-items in a workgroup of [`reduce`].
const GROUP: usize = 256;

/// Tiles of two matrices.
pub struct Tiles {
    a: [[f32; TILE]; TILE],
    b: [[f32; TILE]; TILE],
}

/// `y = a x + y`.
#[kernel]
pub fn saxpy(item: &Item<(), 1>, a: f32, x: &[f32], y: Global<f32>) {
    let i = item.global_index();
    if i < y.len() {
        y.set(item, mul_add(a, x[i], y.get(item)));
    }
}

/// `total += sum of x`.
#[kernel(threads = 256)]
pub fn reduce(item: &Item<[f32; GROUP], 1>, x: &[f32], total: Global<f32>) {
    let (place, sums) = (item.local_id(0), item.shared());
    if place >= GROUP {
        return;
    }
    let mut sum = 0.0;
    let mut i = item.global_id(0);
    while i < x.len() {
        sum += x[i];
        i += item.global_size(0);
    }
    // SAFETY: a work-item writes its own element.
    unsafe { (*sums)[place] = sum }
    let mut half = GROUP / 2;
    while half > 0 {
        item.barrier();
        if place < half {
            // SAFETY: the upper half was written before the barrier, and nobody writes it now.
            unsafe { (*sums)[place] += (*sums)[place + half] }
        }
        half /= 2;
    }
    if place == 0 {
        // SAFETY: this work-item wrote it last.
        total.atomic_add(0, unsafe { (*sums)[0] });
    }
}

/// `c = a b`, of `n` rows and columns. Workgroups have 16 × 16 work-items; `n` is a multiple of 16.
#[kernel(threads = 256)]
pub fn matmul(item: &Item<Tiles>, n: u32, a: &[f32], b: &[f32], c: Global<f32>) {
    let n = n as usize;
    let (x, y) = (item.local_id(0), item.local_id(1));
    if x >= TILE || y >= TILE {
        return;
    }
    let column = item.group_id(0) * TILE + x;
    let row = item.group_id(1) * TILE + y;
    let tiles = item.shared();
    let mut sum = 0.0;
    for start in (0..n).step_by(TILE) {
        // SAFETY: a work-item writes elements of its own, and the last barrier was after the last read.
        unsafe {
            (*tiles).a[y][x] = a[row * n + start + x];
            (*tiles).b[y][x] = b[(start + y) * n + column];
        }
        item.barrier();
        for k in 0..TILE {
            // SAFETY: all elements were written before the barrier, and none is written before the next one.
            sum = mul_add(
                unsafe { (*tiles).a[y][k] },
                unsafe { (*tiles).b[k][x] },
                sum,
            );
        }
        item.barrier();
    }
    // SAFETY: no other work-item has this row and column.
    unsafe { c.write(row * n + column, sum) }
}

/// `y[i]` = the state of a generator of random numbers (xorshift) with the seed `i + 1`, after `steps` steps.
#[kernel]
pub fn xorshift(item: &Item<(), 1>, steps: u32, y: Global<u32>) {
    let i = item.global_index();
    if i >= y.len() {
        return;
    }
    let mut state = i as u32 + 1;
    for _ in 0..steps {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
    }
    y.set(item, state);
}
