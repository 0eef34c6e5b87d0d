fn main() -> Result<(), offload_build::Error> {
    println!("cargo::rerun-if-changed=src");
    cc::Build::new()
        .file("src/main.c")
        .include("kernels")
        .compile("program");
    offload_build::Build::from_manifest()?.run()
}
