fn main() -> Result<(), offload_build::Error> {
    println!("cargo::rerun-if-changed=src/main.c");
    // The program is C; Cargo links it, so Rust calls its main function under this name.
    cc::Build::new()
        .file("src/main.c")
        .include("kernels")
        .define("main", "c_main")
        .compile("program");
    offload_build::Build::from_manifest()?.run()
}
