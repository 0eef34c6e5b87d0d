//! Prints what a program that loads its kernels itself has of them: it needs no GPU and no ROCm for that.

mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

fn main() -> Result<(), kernels::NotBuilt> {
    // What `hipModuleLoadData` takes: the runtime picks the image for the GPU that is there.
    let fat_binary = kernels::image()?;
    println!("{} images in {} bytes", kernels::images().len(), fat_binary.len());

    // What `hipModuleGetFunction` and `hipModuleLaunchKernel` want to know.
    let saxpy = kernels::kernel::saxpy;
    println!("{} takes:", saxpy.name);
    for argument in saxpy.arguments {
        println!("  {} bytes at {}", argument.size, argument.offset);
    }
    for image in saxpy.images {
        println!("on {}: wavefronts of {}", image.target, image.wavefront.unwrap_or_default());
    }
    Ok(())
}
