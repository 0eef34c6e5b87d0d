//! The code for NVIDIA GPUs, as PTX.

use super::*;

const PTX: &[(&str, &[&str])] = &[
    ("thread", &["%tid.x", "%tid.y", "%tid.z"]),
    ("block", &["%ctaid.x", "%ctaid.y", "%ctaid.z"]),
    ("size_x", &["%ntid.x"]),
    ("size_y", &["%ntid.y"]),
    ("size_z", &["%ntid.z"]),
    ("grid_x", &["%nctaid.x"]),
    ("grid_y", &["%nctaid.y"]),
    ("grid_z", &["%nctaid.z"]),
    ("whole", &["%ntid.x", "%ntid.y", "%tid.z"]),
    ("lane", &["%laneid"]),
    ("width", &["32"]),
    ("bounded", &[".maxntid"]),
    ("barrier", &["bar.sync"]),
    ("warp_barrier", &["bar.warp.sync"]),
    ("fence_block", &["membar.cta"]),
    ("fence", &["membar.gl"]),
    ("fence_system", &["membar.sys"]),
    ("ticks", &["%clock64"]),
    ("shuffle", &["shfl.sync.idx.b32", "activemask.b32"]),
    ("shuffle_up", &["shfl.sync.up.b32"]),
    // Groups of 16 lanes: bit 4 of a lane says its group.
    ("shuffle_down", &["shfl.sync.down.b32", ", 4127,"]),
    ("shuffle_xor", &["shfl.sync.bfly.b32", ", 31,"]),
    ("shuffle_double", &["shfl.sync.bfly.b32"]),
    ("votes", &["vote.sync.ballot.b32", "activemask.b32"]),
    ("any", &["vote.sync.any.pred"]),
    ("all", &["vote.sync.all.pred"]),
    (
        "atomics_int",
        &[
            "atom.global.add.u32",
            "atom.global.min.s32",
            "atom.global.max.s32",
            "exch.b32",
            "cas.b32",
            "and.b32",
            "or.b32",
            "xor.b32",
        ],
    ),
    (
        "atomics_unsigned_long_long",
        &["atom.global.add.u64", "atom.global.min.u64", "cas.b64"],
    ),
    ("atomics_float", &["atom.global.add.f32"]),
    ("atomics_double", &["atom.global.add.f64"]),
    ("root", &["sqrt.rn.f32"]),
    ("roots", &["sqrt.rn.f64", "rcp.rn.f64"]),
    ("inverse_root", &["rsqrt.approx.f32"]),
    (
        "floats",
        &[
            "fma.rn.f32",
            "min.f32",
            "max.f32",
            "cvt.rmi.f32.f32",
            "cvt.rpi.f32.f32",
            "cvt.rni.f32.f32",
        ],
    ),
    ("doubles", &["fma.rn.f64", "min.f64", "cvt.rmi.f64.f64"]),
    (
        "fast",
        &[
            "sin.approx.f32",
            "cos.approx.f32",
            "ex2.approx.f32",
            "lg2.approx.f32",
            "div.approx.f32",
        ],
    ),
    (
        "bits",
        &[
            "popc.b64",
            "clz.b32",
            "brev.b64",
            "mul.hi.s32",
            "mul.hi.u32",
        ],
    ),
    ("prints", &["vprintf"]),
    ("allocates", &["malloc", "free"]),
    ("memory", &["dynamic", "bar.sync"]),
];

#[test]
fn reads_and_computes_what_nvidia_defines() {
    let Some(package) = package(KERNELS) else {
        return;
    };
    for release in support::share(RELEASES, 1, 2) {
        let keys = format!("{CUDA}targets = [\"compute_80\", \"compute_90\"]\n");
        if build(&package, &keys, release).is_none() {
            return;
        }
        for target in ["compute_80", "compute_90"] {
            let image = package
                .at(OUT)
                .join(format!("offload/kernels/{target}/image"));
            let ptx = fs::read_to_string(image).unwrap();
            check(&format!("clang {release}, {target}"), &ptx, PTX);
            assert!(
                ptx.contains(".extern .shared .align 4 .b8 dynamic[]"),
                "{ptx}"
            );
        }
        if support::tool("cuda", &["ptxas"]).is_some() {
            // ptxas takes all of it, and each kernel is in the image: the build checks them.
            package.declare(&format!("{CUDA}targets = [\"sm_80\", \"sm_90\"]\n"));
            let mut script = script(&package, release).unwrap();
            text(&with_ptxas(&mut script).output().unwrap());
        }
    }
}

/// The same script, for which NVIDIA's assembler is in `PATH`, and no toolkit is named.
fn with_ptxas(script: &mut Command) -> &mut Command {
    let folder = support::tool("cuda", &["ptxas"]).unwrap();
    let folder = folder.parent().unwrap().display().to_string();
    let path = script.get_envs().find(|(name, _)| *name == "PATH");
    let path = path.unwrap().1.unwrap().to_str().unwrap().to_owned();
    script.env("PATH", format!("{path}:{folder}"))
}
