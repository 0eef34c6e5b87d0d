//! Runs the kernels, and prints the images of the program with their compiler.

use openmp_saxpy::{double, kernels, saxpy, sum};

fn main() {
    for image in kernels::images() {
        let size = match image.bytes.len() {
            0 => "linked by offload-link".to_owned(),
            size => format!("{size} bytes"),
        };
        println!("image    {:<20} {size:<24} {}", image.target, image.compiler);
    }
    let x: Vec<f32> = (0..1 << 20).map(|i| i as f32).collect();
    let mut y = vec![1.0; x.len()];
    let on_device = saxpy(2.0, &x, &mut y);
    let right = x.iter().zip(&y).all(|(x, y)| *y == 2.0 * x + 1.0);
    println!("saxpy    on a device: {on_device}, {} results right: {right}", y.len());

    let mut values: Vec<f64> = (1..=1000).map(f64::from).collect();
    let total = sum(3.0, &values);
    println!("reduce   {total} (expected 1501500)");
    double(&mut values);
    println!("struct   {} (expected 2000)", values[999]);
    assert!(on_device && right && total == 1_501_500.0 && values[999] == 2000.0);
}
