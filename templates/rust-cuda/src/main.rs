use {{crate_name}}::kernels;

fn main() -> Result<(), kernels::NotBuilt> {
    println!("{} images in {} bytes", kernels::images().len(), kernels::image()?.len());
    let saxpy = kernels::kernel::saxpy;
    for argument in saxpy.arguments {
        println!("{}: {} bytes at {}", saxpy.name, argument.size, argument.offset);
    }
    Ok(())
}
