fn main() -> Result<(), offload_build::Error> {
    offload_build::Build::from_manifest()?.run()
}
