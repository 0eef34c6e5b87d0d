use mean::mean;
use scale::scale;

fn main() {
    let targets = |list: Vec<&str>| list.join(" ");
    println!("mean for {}", targets(mean::kernels::images().iter().map(|image| image.target).collect()));
    println!("scale for {}", targets(scale::kernels::images().iter().map(|image| image.target).collect()));
    let mut x = [1.0, 2.0, 6.0];
    scale(&mut x);
    println!("mean: {} (expected 9)", mean(&x));
    assert_eq!(mean(&x), 9.0);
}
