use offload_device::gpu::{Device, Error};

use {{crate_name}}::{images, saxpy_on_cpu, saxpy_on_gpu};

fn main() -> Result<(), Error> {
    let kernel = images::kernel::saxpy;
    for image in kernel.images {
        println!(
            "{} for {}: {} bytes of arguments",
            kernel.name, image.target, image.arguments_size
        );
    }
    let mut y = [0.0; 3];
    match Device::first() {
        Ok(device) => {
            saxpy_on_gpu(&device, 2.0, &[1.0, 2.0, 3.0], &mut y)?;
            println!("{y:?}, computed by {device}");
        }
        Err(error) if error.is_no_gpu() => {
            println!("{error}");
            saxpy_on_cpu(2.0, &[1.0, 2.0, 3.0], &mut y);
            println!("{y:?}, computed by the CPU");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
