use {{crate_name}}::{kernels, scale};

fn main() {
    for image in kernels::images() {
        println!("{}: {} bytes", image.target, image.bytes.len());
    }
    let mut x = [1.0, 2.0, 3.0];
    scale(2.0, &mut x);
    println!("{x:?}");
}
