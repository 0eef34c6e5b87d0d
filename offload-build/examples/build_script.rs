//! The whole text of a build script. Our tests run it as Cargo would.

fn main() -> Result<(), offload_build::Error> {
    offload_build::Build::from_manifest()?.run()
}
