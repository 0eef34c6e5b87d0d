//! Saxpy, tiled matrix product and reduction, and kernels that use each operation of the device.

use offload_device::{Global, Item, kernel, mul_add, sqrt};

/// y = a x + y, without unsafe code
#[kernel]
pub fn saxpy(item: &Item, a: f32, x: &[f32], y: Global<f32>) {
    let i = item.global_index();
    if i < y.len() {
        y.set(item, a * x[i] + y.get(item));
    }
}

/// Width and height of a tile of the matrix product.
pub const TILE: usize = 16;

/// Tiles of both factors.
pub struct Tiles {
    a: [[f32; TILE]; TILE],
    b: [[f32; TILE]; TILE],
}

/// c = a b of n × n, in workgroups of 16 × 16; 16 divides n
#[kernel(threads = 256)]
pub fn matmul(item: &Item<Tiles>, n: u32, a: &[f32], b: &[f32], c: Global<f32>) {
    let n = n as usize;
    let (x, y) = (item.local_id(0), item.local_id(1));
    let (column, row) = (item.global_id(0), item.global_id(1));
    let tiles = item.shared();
    let mut sum = 0.0;
    for tile in 0..n / TILE {
        // SAFETY: each work-item writes elements of its own.
        unsafe {
            (*tiles).a[y][x] = a[row * n + tile * TILE + x];
            (*tiles).b[y][x] = b[(tile * TILE + y) * n + column];
        }
        item.barrier();
        for k in 0..TILE {
            // SAFETY: between the barriers nobody writes.
            sum += unsafe { (*tiles).a[y][k] * (*tiles).b[k][x] };
        }
        item.barrier();
    }
    // SAFETY: the element is of this work-item only.
    unsafe { c.write(row * n + column, sum) }
}

/// Work-items in a workgroup of the reduction.
pub const GROUP: usize = 256;

/// total += all of x, in workgroups of 256
#[kernel(threads = 256)]
pub fn reduce(item: &Item<[f32; GROUP]>, x: &[f32], total: Global<f32>) {
    let l = item.local_id(0);
    let part = item.shared();
    let mut mine = 0.0;
    let mut i = item.global_id(0);
    while i < x.len() {
        mine += x[i];
        i += item.global_size(0);
    }
    // SAFETY: each work-item writes an element of its own.
    unsafe { (*part)[l] = mine }
    let mut half = GROUP / 2;
    while half > 0 {
        item.barrier();
        if l < half {
            // SAFETY: the others access neither element between the barriers.
            unsafe { (*part)[l] += (*part)[l + half] }
        }
        half /= 2;
    }
    if l == 0 {
        // SAFETY: this work-item wrote the element last.
        total.atomic_add(0, unsafe { (*part)[0] });
    }
}

/// Kernels with names and arguments of all kinds, of the visibility of a module.
pub mod arguments {
    use super::*;

    /// Stores the sum of scalars of each type.
    #[kernel]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn scalars(
        item: &Item,
        a: u8,
        b: i8,
        c: u16,
        d: i16,
        e: u32,
        f: i32,
        g: u64,
        h: i64,
        i: usize,
        j: isize,
        mut k: f32,
        l: f64,
        sums: Global<[f64; 2]>,
    ) {
        k *= 2.0;
        let positive =
            f64::from(a) + f64::from(c) + f64::from(e) + g as f64 + i as f64 + f64::from(k);
        let negative = f64::from(b) + f64::from(d) + f64::from(f) + h as f64 + j as f64 + l;
        sums.set(item, [positive, negative]);
    }

    /// Has a keyword as its name, and an argument that the expansion might use.
    #[kernel]
    pub fn r#loop(item: &Item, grid: u32, y: Global<u32>) {
        y.set(item, grid + item.global_index() as u32);
    }
}

/// root = √x, fused = x x + 1
#[kernel]
pub fn floats(item: &Item, x: &[f64], root: Global<f64>, fused: Global<f64>, single: Global<f32>) {
    let i = item.global_index();
    root.set(item, sqrt(x[i]));
    fused.set(item, mul_add(x[i], x[i], -1.0));
    single.set(item, mul_add(sqrt(x[i] as f32), 2.0, 1.0));
}

/// Stores the place of each work-item.
#[kernel]
pub fn places(item: &Item, y: Global<[u32; 12]>) {
    let all = |f: &dyn Fn(u32) -> usize| [0, 1, 2].map(|dimension| f(dimension) as u32);
    let [a, b, c] = all(&|d| item.local_id(d));
    let [d, e, f] = all(&|d| item.group_id(d));
    let [g, h, i] = all(&|d| item.global_id(d));
    let [j, k, l] = all(&|d| item.global_size(d));
    y.set(item, [a, b, c, d, e, f, g, h, i, j, k, l]);
}

macro_rules! atomics {
    (@ $name:ident $type:ty { $($extra:tt)* }) => {
        /// Uses each atomic operation.
        #[kernel]
        pub fn $name(item: &Item, x: &[$type], y: Global<$type>) {
            let value = x[item.global_index()];
            y.atomic_add(0, value);
            y.atomic_store(1, value);
            y.atomic_exchange(2, y.atomic_load(1));
            atomics!(# y value $($extra)*);
        }
    };
    (# $y:ident $value:ident $($operation:ident $index:literal)*) => { $($y.$operation($index, $value);)* };
    ($($name:ident $type:ident $extra:tt)*) => { $(atomics!(@ $name $type $extra);)* };
}
atomics! {
    atomics_u32 u32 { atomic_min 3 atomic_max 4 atomic_and 5 atomic_or 6 atomic_xor 7 }
    atomics_i32 i32 { atomic_min 3 atomic_max 4 }
    atomics_u64 u64 { atomic_min 3 atomic_max 4 atomic_and 5 atomic_or 6 atomic_xor 7 }
    atomics_i64 i64 { atomic_min 3 atomic_max 4 }
    atomics_f32 f32 {}
    atomics_f64 f64 {}
}

/// Counts work-items by compare-exchange: y\[0\] grows by one for each, y\[1\] for each attempt that failed.
#[kernel]
pub fn compare_exchange(_item: &Item, y: Global<u32>, z: Global<u64>) {
    let mut expected = 0;
    while let Err(found) = y.atomic_compare_exchange(0, expected, expected + 1) {
        y.atomic_add(1, 1);
        expected = found;
    }
    while let Err(found) =
        z.atomic_compare_exchange(0, z.atomic_load(0), u64::from(expected) + (1 << 40))
    {
        z.atomic_max(1, found);
    }
}

/// Kernel that only this module knows: a GPU's image has it all the same.
#[kernel]
fn private(item: &Item, y: Global<u32>) {
    y.set(item, 1);
}
