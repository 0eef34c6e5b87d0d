mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

unsafe extern "C" {
    fn scale(factor: f64, x: *mut f64, count: usize);
}

fn main() {
    for image in kernels::images() {
        println!("{}: {} bytes", image.target, image.bytes.len());
    }
    let mut x = [1.0, 2.0, 3.0];
    // SAFETY: `x` has `x.len()` elements, which the function writes.
    unsafe { scale(2.0, x.as_mut_ptr(), x.len()) };
    println!("{x:?}");
}
