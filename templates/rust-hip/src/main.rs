use {{crate_name}}::kernels;

fn main() -> Result<(), kernels::NotBuilt> {
    println!("{} images in {} bytes", kernels::images().len(), kernels::image()?.len());
    let saxpy = kernels::kernel::saxpy;
    for image in saxpy.images {
        println!("{} for {}: {} registers", saxpy.name, image.target, image.registers.unwrap_or_default());
    }
    Ok(())
}
