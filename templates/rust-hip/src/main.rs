use std::error::Error;

use offload_device::gpu::{Api, Device};

use {{crate_name}}::{kernels, saxpy};

fn main() -> Result<(), Box<dyn Error>> {
    let kernel = kernels::kernel::saxpy;
    for image in kernel.images {
        println!(
            "{} for {}: {} registers",
            kernel.name,
            image.target,
            image.registers.unwrap_or_default()
        );
    }
    match Device::new(Api::Hip, 0) {
        Ok(device) => {
            let y = saxpy(&device, 2.0, &[1.0, 2.0, 3.0], &[0.0, 0.0, 0.0])?;
            println!("{y:?}, computed by {device}");
        }
        Err(error) if error.is_no_gpu() => println!("not launched: {error}"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
