//! Prints each source's PTX text and kernels, as a program has them that loads PTX by `cuModuleLoadData`.

mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

fn main() {
    let sources = [
        ("affine.cu", kernels::affine::PTX, kernels::affine::kernel::ALL),
        ("fill.cu", kernels::fill::PTX, kernels::fill::kernel::ALL),
    ];
    for (name, ptx, kernels) in sources {
        let target = ptx.lines().find(|line| line.starts_with(".target"));
        println!("{name}: {} lines, {}", ptx.lines().count(), target.unwrap_or_default());
        for kernel in kernels {
            println!("  {} with {} arguments", kernel.name, kernel.arguments.len());
        }
    }
    // A constant for each kernel: a misspelled name does not compile.
    println!("start {} of affine.cu", kernels::affine::kernel::affine.name);
}
