fn main() -> Result<(), offload_build::Error> {
    // The kit has NVIDIA's runtime in a folder beside its programs.
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,$ORIGIN/../lib");
    offload_build::Build::from_manifest()?.run()
}
