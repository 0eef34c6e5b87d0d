//! A build script that declares modules itself: no table in Cargo.toml is needed. Our tests run it as Cargo would.

use offload_build::Build;

fn main() -> Result<(), offload_build::Error> {
    let hip = |name: &str| {
        let hip = Build::new("hip")?.name(name).sources(["kernels/*.hip"]);
        hip.flags(["-nogpulib", "-nogpuinc"]).targets(["gfx90a"])
    };
    hip("plain")?
        .module(hip("tiled")?.define("TILE", "64").targets(["gfx1100"])?)
        .run()
}
