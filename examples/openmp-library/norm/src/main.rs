fn main() {
    let norm = vectors::dot(&[3.0, 4.0], &[3.0, 4.0]).sqrt();
    println!("norm, of a dot product on a device: {norm} (expected 5)");
    assert_eq!(norm, 5.0);
}
