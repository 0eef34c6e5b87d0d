//! The functions beside plain loops.

use {{crate_name}}::{LengthError, axpy, dot, targets};

fn numbers(count: u32) -> Vec<f64> {
    (0..count).map(f64::from).collect()
}

#[test]
fn agrees_with_the_host() {
    for count in [0, 1, 1000] {
        let (x, mut y) = (numbers(count), numbers(count));
        axpy(2.0, &x, &mut y).unwrap();
        assert_eq!(y, x.iter().map(|x| 3.0 * x).collect::<Vec<_>>());
        let expected: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        assert_eq!(dot(&x, &y).unwrap(), expected);
    }
    assert!(targets().count() > 0);
}

#[test]
fn rejects_vectors_of_different_lengths() {
    let error = LengthError { x: 2, y: 1 };
    assert_eq!(axpy(1.0, &[1.0, 2.0], &mut [1.0]), Err(error));
    assert_eq!(dot(&[1.0, 2.0], &[1.0]), Err(error));
    assert_eq!(
        error.to_string(),
        "expected vectors of one length, found 2 and 1 elements"
    );
}
