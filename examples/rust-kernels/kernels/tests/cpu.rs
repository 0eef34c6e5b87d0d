//! The kernels on the CPU, beside plain loops.

use kernels::{GROUP, TILE, matmul, reduce, saxpy};
use offload_device::{Global, cpu::Grid};

#[test]
fn adds_vectors() {
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut y = vec![1.0; x.len()];
    saxpy::run(Grid::covering(1000, 256), 2.0, &x, Global::new(&mut y));
    for (x, y) in x.iter().zip(y) {
        assert_eq!(y, 2.0 * x + 1.0);
    }
}

#[test]
fn multiplies_matrices() {
    let n = 4 * TILE;
    let a: Vec<f32> = (0..n * n).map(|i| (i * 7 % 13) as f32).collect();
    let b: Vec<f32> = (0..n * n).map(|i| (i * 5 % 11) as f32).collect();
    let mut c = vec![f32::NAN; n * n];
    let tile = TILE as u32;
    let grid = Grid::covering([n as u32; 2], [tile; 2]);
    matmul::run(grid, n as u32, &a, &b, Global::new(&mut c));
    for row in 0..n {
        for column in 0..n {
            let expected: f32 = (0..n).map(|k| a[row * n + k] * b[k * n + column]).sum();
            assert_eq!(c[row * n + column], expected, "row {row}, column {column}");
        }
    }
}

#[test]
fn sums_up() {
    let x: Vec<f32> = (0..10_000).map(|i| (i % 100) as f32).collect();
    let mut total = [0.0];
    reduce::run(Grid::new(8, GROUP as u32), &x, Global::new(&mut total));
    assert_eq!(total[0], x.iter().sum::<f32>());
}
