use {{crate_name}}::images;

fn main() {
    let saxpy = images::kernel::saxpy;
    for image in saxpy.images {
        println!("{} for {}: {} registers", saxpy.name, image.target, image.registers.unwrap_or_default());
    }
}
