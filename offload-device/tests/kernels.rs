//! Runs kernels on the CPU and compares their results with plain loops.

#[path = "kernels/src/all.rs"]
#[allow(unreachable_pub, reason = "public in the crate of the kernels")]
mod all;

use all::{TILE, arguments};
use offload_device::cpu::Grid;
use offload_device::{Global, Layout};

#[test]
fn adds_scaled_vectors() {
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut y = vec![1.0; 1000];
    all::saxpy::run(Grid::covering(1000, 256), 2.0, &x, Global::new(&mut y));
    assert!(
        y.iter()
            .enumerate()
            .all(|(i, y)| *y == 2.0 * i as f32 + 1.0)
    );
}

#[test]
fn multiplies_matrices() {
    let n = 64;
    let a: Vec<f32> = (0..n * n).map(|i| (i * 7 % 13) as f32).collect();
    let b: Vec<f32> = (0..n * n).map(|i| (i * 5 % 11) as f32).collect();
    let mut c = vec![f32::NAN; n * n];
    let groups = (n / TILE) as u32;
    all::matmul::run(
        Grid::new([groups; 2], [TILE as u32; 2]),
        n as u32,
        &a,
        &b,
        Global::new(&mut c),
    );
    for row in 0..n {
        for column in 0..n {
            let expected: f32 = (0..n).map(|k| a[row * n + k] * b[k * n + column]).sum();
            assert_eq!(c[row * n + column], expected, "row {row}, column {column}");
        }
    }
}

#[test]
fn reduces_to_a_sum() {
    let x: Vec<f32> = (0..10_000).map(|i| (i % 100) as f32).collect();
    let mut total = [0.0f32];
    all::reduce::run(Grid::new(8, 256), &x, Global::new(&mut total));
    assert_eq!(total[0], x.iter().sum::<f32>());
}

#[test]
fn passes_scalars_of_all_types() {
    let mut sums = [[0.0; 2]; 2];
    let grid = Grid::new(1, 2);
    arguments::scalars::run(
        grid,
        1,
        -2,
        4,
        -8,
        16,
        -32,
        64,
        -128,
        256,
        -512,
        0.25,
        -0.25,
        Global::new(&mut sums),
    );
    assert_eq!(sums, [[341.5, -682.25]; 2]);
    let sizes: Vec<usize> = arguments::scalars::ARGUMENTS
        .iter()
        .map(|argument| argument.size)
        .collect();
    assert_eq!(sizes, [1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 4, 8, 8, 8]);
    let offsets: Vec<usize> = Layout::offsets(arguments::scalars::ARGUMENTS).collect();
    assert_eq!(offsets, [0, 1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72]);
    for (index, offset) in offsets.into_iter().enumerate() {
        assert_eq!(Layout::offset(arguments::scalars::ARGUMENTS, index), offset);
    }
    assert_eq!(Layout::buffer_size(arguments::scalars::ARGUMENTS), 80);
    assert_eq!(Layout::buffer_size(&[]), 0);
}

#[test]
fn describes_kernels() {
    assert_eq!(
        (all::saxpy::NAME, all::saxpy::SHARED, all::saxpy::THREADS),
        ("saxpy", 0, None)
    );
    assert_eq!(
        (all::matmul::NAME, all::matmul::SHARED, all::matmul::THREADS),
        ("matmul", 2048, Some(256))
    );
    assert_eq!(
        (all::reduce::NAME, all::reduce::SHARED, all::reduce::THREADS),
        ("reduce", 1024, Some(256))
    );
    assert_eq!(arguments::r#loop::NAME, "loop");
    const POINTER: Layout = Layout { size: 8, align: 8 };
    const _: () = assert!(all::matmul::ARGUMENTS.len() == 7);
    assert_eq!(
        all::matmul::ARGUMENTS,
        [&[Layout { size: 4, align: 4 }][..], &[POINTER; 6]].concat()
    );
}

#[test]
fn names_arguments_without_conflicts() {
    let mut y = [0; 4];
    arguments::r#loop::run(Grid::new(2, 2), 10, Global::new(&mut y));
    assert_eq!(y, [10, 11, 12, 13]);
}

#[test]
fn computes_roots_and_fused_products() {
    let x: Vec<f64> = (0..16).map(|i| f64::from(i) + f64::EPSILON * 8.0).collect();
    let (mut root, mut fused, mut single) = ([0.0; 16], [0.0; 16], [0.0f32; 16]);
    let globals = (
        Global::new(&mut root),
        Global::new(&mut fused),
        Global::new(&mut single),
    );
    all::floats::run(Grid::new(4, 4), &x, globals.0, globals.1, globals.2);
    let mut contracted = 0;
    for i in 0..16 {
        assert_eq!(root[i], x[i].sqrt());
        assert_eq!(fused[i], x[i].mul_add(x[i], -1.0));
        assert_eq!(single[i], (x[i] as f32).sqrt().mul_add(2.0, 1.0));
        contracted += usize::from(fused[i] != x[i] * x[i] - 1.0);
    }
    assert!(
        contracted > 0,
        "the values do not tell a fused product from two roundings"
    );
}

#[test]
fn numbers_work_items_in_three_dimensions() {
    let (groups, items) = ([2, 3, 2], [4, 1, 3]);
    let mut y = vec![[u32::MAX; 12]; 144];
    all::places::run(Grid::new(groups, items), Global::new(&mut y));
    let size = [8, 3, 6];
    for (index, found) in y.iter().enumerate() {
        let index = index as u32;
        let global = [index % 8, index / 8 % 3, index / 24];
        let mut expected = Vec::new();
        expected.extend((0..3).map(|d| global[d] % items[d]));
        expected.extend((0..3).map(|d| global[d] / items[d]));
        expected.extend(global);
        expected.extend(size);
        assert_eq!(found[..], expected, "index {index}");
    }
}

/// Tests the atomic operations of a type on values of 1,000 work-items.
macro_rules! atomics {
    ($($name:ident: $kernel:ident $type:ty, $first:expr, $others:expr;)*) => {$(
        #[test]
        fn $name() {
            let x: Vec<$type> = (1..=1000).map(|i| i as $type).collect();
            let mut y: [$type; 8] = $first;
            all::$kernel::run(Grid::new(10, 100), &x, Global::new(&mut y));
            assert_eq!(y[0], x.iter().copied().sum::<$type>());
            assert!(x.contains(&y[1]) && x.contains(&y[2]), "{y:?}");
            let expected: [$type; 5] = $others;
            assert_eq!(y[3..], expected);
        }
    )*};
}
atomics! {
    operates_atomically_on_u32: atomics_u32 u32, [0, 0, 0, 9, 9, !0, 0, 0], [1, 1000, 0, 1023, 1000];
    operates_atomically_on_i32: atomics_i32 i32, [0, 0, 0, -9, -9, 0, 0, 0], [-9, 1000, 0, 0, 0];
    operates_atomically_on_u64: atomics_u64 u64, [0, 0, 0, 9, 9, !0, 0, 0], [1, 1000, 0, 1023, 1000];
    operates_atomically_on_i64: atomics_i64 i64, [0, 0, 0, -9, -9, 0, 0, 0], [-9, 1000, 0, 0, 0];
    operates_atomically_on_f32: atomics_f32 f32, [0.0; 8], [0.0; 5];
    operates_atomically_on_f64: atomics_f64 f64, [0.0; 8], [0.0; 5];
}

#[test]
fn compares_and_exchanges() {
    let (mut y, mut z) = ([0, 0], [0, 0]);
    all::compare_exchange::run(Grid::new(10, 10), Global::new(&mut y), Global::new(&mut z));
    assert_eq!(y[0], 100);
    assert!(
        y[1] >= 99,
        "each work-item but the first finds another value than 0"
    );
    assert!(z[0] >= 1 << 40);
}

#[test]
fn wraps_integers() {
    let x = [1];
    let mut y = [u32::MAX, 0, 0, 0, 0, 0, 0, 0];
    all::atomics_u32::run(Grid::new(1, 1), &x, Global::new(&mut y));
    assert_eq!(y[0], 0);
}
