fn main() {
    let x: Vec<f64> = (1..=100).map(f64::from).collect();
    let dot = vectors::dot(&x, &x);
    println!("dot product, on a device: {dot} (expected 338350)");
    assert_eq!(dot, 338_350.0);
}

#[test]
fn computes_on_a_device() {
    assert_eq!(vectors::dot(&[1.0, 2.0], &[3.0, 4.0]), 11.0);
}
