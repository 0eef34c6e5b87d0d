//! Arithmetic of one work-item.

use offload_device::{Global, Item, kernel, sqrt};

/// Integers of all widths: division, rotation, saturation, and products of 128 bits.
#[kernel]
pub fn integers(item: &Item, seed: u64, x: &[u64], y: Global<u64>) {
    let i = item.global_index();
    if i >= y.len() {
        return;
    }
    let value = x[i] ^ seed;
    let (low, high) = (value as u32, (value >> 32) as u32 | 1);
    let mut result = u64::from(low / high) ^ u64::from(low % high);
    result = result.rotate_left(7) ^ (value / (seed | 1)) ^ (value % u64::from(high));
    result ^= (value as i64 / (i64::from(high) | 1)) as u64;
    result ^= i64::from(value as i8).wrapping_mul(i64::from(value as i16)) as u64;
    let wide = u128::from(value).wrapping_mul(u128::from(seed) | 1 << 64 | 1);
    result ^= (wide >> 64) as u64 ^ wide as u64 ^ (wide / u128::from(high)) as u64;
    let bits = low.leading_zeros() + high.trailing_zeros() + low.count_ones();
    result = result.wrapping_add(u64::from(bits));
    result ^= u64::from(low.reverse_bits()) ^ u64::from(high.swap_bytes()) << 13;
    result ^= u64::from(low.saturating_add(high)) << 3;
    result ^= low.checked_mul(high).map_or(5, u64::from);
    y.set(item, result ^ (low as i32 >> (high % 32)) as u64);
}

#[derive(Clone, Copy)]
enum Step {
    Add(f64),
    Multiply(f64),
    Negate,
    Root,
}

#[inline(never)]
fn apply(step: Step, x: f64) -> f64 {
    match step {
        Step::Add(a) => x + a,
        Step::Multiply(a) => x * a,
        Step::Negate => -x,
        Step::Root => sqrt(x.abs()),
    }
}

/// Enums with data, calls, conversions that saturate, and what is not a number.
#[kernel]
pub fn floats(item: &Item, x: &[f64], y: Global<f64>) {
    let i = item.global_index();
    if i >= y.len() {
        return;
    }
    let steps = [
        Step::Add(1.5),
        Step::Multiply(x[i]),
        Step::Negate,
        Step::Root,
        Step::Multiply(3.25),
    ];
    let mut value = x[i * 7 % x.len()];
    for k in 0..steps.len() {
        value = apply(steps[(k + i) % steps.len()], value);
    }
    let single = value as f32;
    value += f64::from(single as i32) + f64::from(single as u8) + value as i64 as f64 * 1e-3;
    value += f64::from(single.to_bits()) * 1e-9 + value.clamp(-5.0, 5.0);
    value += if value.is_nan() {
        1.0
    } else {
        value.clamp(2.0, 9.0)
    };
    y.set(item, value);
}

/// Functions of the crate `libm`.
#[kernel]
pub fn functions(item: &Item, x: &[f64], y: Global<f64>) {
    let i = item.global_index();
    if i < y.len() {
        let x = x[i];
        let positive = 1.0 + x * x;
        let sum = libm::sin(x) + libm::exp(x * 0.01) + libm::log(positive);
        y.set(
            item,
            sum + libm::pow(positive, 0.3) + libm::cbrt(x) + libm::atan2(x, 2.0),
        );
    }
}

trait Shape {
    fn area(&self) -> f32;
}

struct Square(f32);

struct Rectangle(f32, f32);

impl Shape for Square {
    fn area(&self) -> f32 {
        self.0 * self.0
    }
}

impl Shape for Rectangle {
    fn area(&self) -> f32 {
        self.0 * self.1
    }
}

fn fibonacci(n: u32) -> u32 {
    if n < 2 {
        n
    } else {
        fibonacci(n - 1) + fibonacci(n - 2)
    }
}

/// A call through a table of functions, and recursion.
#[kernel]
pub fn calls(item: &Item, y: Global<f32>) {
    let i = item.global_index();
    if i >= y.len() {
        return;
    }
    let (square, rectangle) = (Square(i as f32), Rectangle(i as f32, 0.5));
    let shape: &dyn Shape = if i.is_multiple_of(3) {
        &square
    } else {
        &rectangle
    };
    y.set(item, shape.area() + fibonacci(i as u32 % 12) as f32);
}
