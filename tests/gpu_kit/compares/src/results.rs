//! Results of kernels on the GPU and on the CPU.

use compared_kernels::{
    GROUP, atomics, calls, floats, functions, integers, large_shared, matmul, places, reduce,
    saxpy, sort, xorshift,
};
use offload_device::gpu::{Buffer, Error, Module, Stream};
use offload_device::{Global, Grid};
use std::fmt::Debug;

/// Runs a kernel on both with the same numbers, slices and buffers, and compares what the buffers have then.
macro_rules! compare {
    ($comparison:ident, $kernel:ident, $grid:expr, [$($number:expr),*], [$($slice:ident),*], [$($buffer:ident),+]) => {{
        let grid = $grid;
        // What is there before, and what the CPU leaves.
        $(let mut $buffer = (&$buffer, $buffer.clone());)+
        $kernel::run(grid, $($number,)* $(&$slice,)* $(Global::new(&mut $buffer.1)),+);
        if let Some((stream, module)) = $comparison.gpu {
            $(let $slice = Buffer::from_slice(stream, &$slice)?;)*
            $(let mut $buffer = (Buffer::from_slice(stream, $buffer.0)?, $buffer.1);)+
            $kernel::launch(module, grid, $($number,)* $(&$slice,)* $(&mut $buffer.0),+)?;
            $($comparison.check(concat!(stringify!($kernel), ", ", stringify!($buffer)), &$buffer.1, &$buffer.0.to_vec()?);)+
        }
    }};
}

/// What the kernels run on besides the CPU, and whether all results were equal.
struct Comparison<'a> {
    gpu: Option<(&'a Stream, &'a Module)>,
    is_equal: bool,
}

impl Comparison<'_> {
    fn check<T: PartialEq + Debug>(&mut self, name: &str, cpu: &[T], gpu: &[T]) {
        let mut differences = cpu
            .iter()
            .zip(gpu)
            .enumerate()
            .filter(|(_, (cpu, gpu))| cpu != gpu);
        match differences.next() {
            None => println!("{name}: {} elements are equal", cpu.len()),
            Some((index, (cpu, gpu))) => {
                let count = 1 + differences.count();
                println!(
                    "{name}: wrong result in {count} elements, first {index}: {gpu:?}, on the CPU {cpu:?}"
                );
                self.is_equal = false;
            }
        }
    }
}

/// Returns whether all kernels give the same results on a GPU, if there is one, as on the CPU.
pub fn compare(gpu: Option<(&Stream, &Module)>) -> Result<bool, Error> {
    let mut gpu = Comparison {
        gpu,
        is_equal: true,
    };
    const COUNT: usize = 10_000;
    let all = Grid::for_len(COUNT, 128);
    let numbers = numbers();
    let reals: Vec<f64> = numbers
        .iter()
        .map(|number| f64::from(*number as i32) / 1e7)
        .collect();

    let y = vec![0u64; COUNT];
    compare!(gpu, integers, all, [0x0123_4567], [numbers], [y]);
    let y = vec![0f64; COUNT];
    compare!(gpu, floats, all, [], [reals], [y]);
    compare!(gpu, functions, all, [], [reals], [y]);
    let y = vec![0f32; 300];
    compare!(gpu, calls, Grid::covering(300, 64), [], [], [y]);

    let grid = Grid::new([3, 4, 5], [8, 4, 2]);
    let y = vec![0u32; 3 * 4 * 5 * 8 * 4 * 2];
    compare!(gpu, places, grid, [], [], [y]);
    let y: Vec<u32> = numbers
        .iter()
        .take(10 * GROUP)
        .map(|number| *number as u32)
        .collect();
    compare!(gpu, sort, Grid::new(10, GROUP as u32), [], [], [y]);
    let y = vec![0u64; 2 * GROUP];
    compare!(gpu, large_shared, Grid::new(2, GROUP as u32), [], [], [y]);
    let u32s = vec![0u32, u32::MAX, 0, 0, 0, u32::MAX, 0, 0, 0];
    let (i32s, i64s) = (vec![0i32; 3], vec![0i64; 3]);
    let u64s = vec![0u64, u64::MAX, 0, 0, 0, u64::MAX, 0];
    let (f32s, f64s) = (vec![0f32], vec![0f64]);
    compare!(
        gpu,
        atomics,
        Grid::new(20, 64),
        [],
        [],
        [u32s, i32s, u64s, i64s, f32s, f64s]
    );

    // Small integers, so that each order of additions gives the same sums.
    const N: usize = 128;
    let a: Vec<f32> = (0..N * N).map(|i| (i * 7 % 13) as f32).collect();
    let b: Vec<f32> = (0..N * N).map(|i| (i * 5 % 11) as f32).collect();
    let c = vec![0f32; N * N];
    compare!(
        gpu,
        matmul,
        Grid::covering([N as u32; 2], [16; 2]),
        [N as u32],
        [a, b],
        [c]
    );
    let y: Vec<f32> = (0..COUNT).map(|i| i as f32 / 3.0).collect();
    let x: Vec<f32> = reals.iter().map(|real| *real as f32).collect();
    compare!(gpu, saxpy, all, [2.1], [x], [y]);
    let x: Vec<f32> = (0..COUNT).map(|i| (i % 17) as f32).collect();
    let total = vec![0f32];
    compare!(gpu, reduce, Grid::new(8, GROUP as u32), [], [x], [total]);
    let y = vec![0u32; COUNT];
    compare!(gpu, xorshift, all, [100], [], [y]);
    Ok(gpu.is_equal)
}

/// The same 10,000 numbers in each run.
fn numbers() -> Vec<u64> {
    let next = |state: &u64| {
        Some(
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407),
        )
    };
    let states = std::iter::successors(Some(1), next);
    states
        .map(|state| state ^ state >> 33)
        .take(10_000)
        .collect()
}
