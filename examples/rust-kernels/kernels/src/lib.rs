//! Kernels for AMD GPUs, NVIDIA GPUs and the CPU.
#![no_std]

use offload_device::{Global, Item, kernel};

/// Rows and columns of a tile of [`matmul`].
pub const TILE: usize = 16;

/// Work-items in a workgroup of [`reduce`].
pub const GROUP: usize = 256;

/// Tiles of two matrices, in the memory that a workgroup shares.
pub struct Tiles {
    a: [[f32; TILE]; TILE],
    b: [[f32; TILE]; TILE],
}

/// `y = a x + y`. Each work-item has an element.
#[kernel]
pub fn saxpy(item: &Item, a: f32, x: &[f32], y: Global<f32>) {
    let i = item.global_index();
    if i < y.len() {
        y.set(item, a * x[i] + y.get(item));
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
            sum += unsafe { (*tiles).a[y][k] * (*tiles).b[k][x] };
        }
        item.barrier();
    }
    // SAFETY: no other work-item has this row and column.
    unsafe { c.write(row * n + column, sum) }
}

/// `total += sum of x`. Workgroups have 256 work-items.
#[kernel(threads = 256)]
pub fn reduce(item: &Item<[f32; GROUP]>, x: &[f32], total: Global<f32>) {
    let place = item.local_id(0);
    if place >= GROUP {
        return;
    }
    let sums = item.shared();
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
