//! Places, barriers, shared memory and atomic operations.

use offload_device::{Global, Item, kernel};

/// Work-items in a workgroup of [`sort`] and [`large_shared`].
pub const GROUP: usize = 256;

/// All that a work-item knows of its place.
#[kernel]
pub fn places(item: &Item, y: Global<u32>) {
    let i = item.global_index();
    if i >= y.len() {
        return;
    }
    let mut value = 0u32;
    for dimension in 0..3 {
        let places = [
            item.local_id(dimension),
            item.group_id(dimension),
            item.local_size(dimension),
            item.group_count(dimension),
            item.global_id(dimension),
            item.global_size(dimension),
        ];
        for place in places {
            value = value.wrapping_mul(31).wrapping_add(place as u32);
        }
    }
    y.set(item, value);
}

/// Sorts the part of `y` of each workgroup, in shared memory, by a bitonic network.
#[kernel(threads = 256)]
pub fn sort(item: &Item<[u32; GROUP], 1>, y: Global<u32>) {
    let (i, values) = (item.local_id(0), item.shared());
    if i >= GROUP {
        return;
    }
    let mine = item.global_index();
    // SAFETY: each work-item accesses its own element.
    unsafe { (*values)[i] = y.read(mine) }
    let mut size = 2;
    while size <= GROUP {
        let mut distance = size / 2;
        while distance > 0 {
            item.barrier();
            let other = i ^ distance;
            if other > i {
                // SAFETY: between two barriers a pair belongs to the work-item of its lower place.
                unsafe {
                    let pair = ((*values)[i], (*values)[other]);
                    if (i & size == 0) == (pair.0 > pair.1) {
                        ((*values)[i], (*values)[other]) = (pair.1, pair.0);
                    }
                }
            }
            distance /= 2;
        }
        size *= 2;
    }
    item.barrier();
    // SAFETY: each work-item accesses its own element, which nobody changes after the barrier.
    unsafe { y.write(mine, (*values)[i]) }
}

/// Elements of the shared memory of [`large_shared`]: 96,000 bytes.
const LARGE: usize = 12_000;

/// More shared memory than a kernel of NVIDIA has by default.
#[kernel(threads = 256)]
pub fn large_shared(item: &Item<[u64; LARGE], 1>, y: Global<u64>) {
    let (start, values) = (item.local_id(0), item.shared());
    for i in (start..LARGE).step_by(GROUP) {
        // SAFETY: a work-item writes elements of its own.
        unsafe { (*values)[i] = 3 * i as u64 }
    }
    item.barrier();
    let mut sum = 0;
    for i in (start..LARGE).step_by(GROUP) {
        // SAFETY: nobody writes after the barrier.
        sum += unsafe { (*values)[LARGE - 1 - i] };
    }
    if item.global_index() < y.len() {
        y.set(item, sum);
    }
}

/// Each atomic operation, by all work-items on the same elements.
#[kernel]
pub fn atomics(
    item: &Item,
    u32s: Global<u32>,
    i32s: Global<i32>,
    u64s: Global<u64>,
    i64s: Global<i64>,
    f32s: Global<f32>,
    f64s: Global<f64>,
) {
    let n = item.global_index();
    u32s.atomic_add(0, 1);
    u32s.atomic_min(1, n as u32);
    u32s.atomic_max(2, n as u32);
    u32s.atomic_xor(3, n as u32);
    u32s.atomic_or(4, 1 << (n % 32));
    u32s.atomic_and(5, !(1 << (n % 16)));
    u32s.atomic_store(6, 77);
    i32s.atomic_add(0, -1);
    i32s.atomic_min(1, -(n as i32));
    i32s.atomic_max(2, n as i32 - 50);
    u64s.atomic_add(0, 1 << 33);
    u64s.atomic_min(1, u64::MAX - n as u64);
    u64s.atomic_max(2, (n as u64) << 40);
    u64s.atomic_xor(3, (n as u64) << 20);
    u64s.atomic_or(4, 1 << (n % 64));
    u64s.atomic_and(5, !(1 << (n % 64)));
    i64s.atomic_add(0, -(1 << 34));
    i64s.atomic_min(1, -((n as i64) << 33));
    i64s.atomic_max(2, (n as i64) << 33);
    f32s.atomic_add(0, 1.0);
    f64s.atomic_add(0, 0.5);
    let mut seen = u64s.atomic_load(6);
    while seen < 3 * n as u64 {
        match u64s.atomic_compare_exchange(6, seen, 3 * n as u64) {
            Ok(_) => break,
            Err(now) => seen = now,
        }
    }
    // What is taken out is counted, so the sum of all is known.
    let taken = u32s.atomic_exchange(7, 1);
    u32s.atomic_add(8, taken);
}

/// Reads an element that `x` does not have, if it has less than `y`: a trap.
#[kernel]
pub fn traps(item: &Item, x: &[u32], y: Global<u32>) {
    let i = item.global_index();
    if i < y.len() {
        y.set(item, x[i]);
    }
}
