//! The code for AMD GPUs: intrinsics, offsets of sizes, instructions.

use super::*;

const AMD_IR: &[(&str, &[&str])] = &[
    (
        "thread",
        &[
            "@llvm.amdgcn.workitem.id.x",
            "@llvm.amdgcn.workitem.id.y",
            "@llvm.amdgcn.workitem.id.z",
        ],
    ),
    (
        "block",
        &[
            "@llvm.amdgcn.workgroup.id.x",
            "@llvm.amdgcn.workgroup.id.y",
            "@llvm.amdgcn.workgroup.id.z",
        ],
    ),
    ("lane", &["@llvm.amdgcn.mbcnt.lo"]),
    (
        "barrier",
        &[
            "fence syncscope(\"workgroup\") release",
            "@llvm.amdgcn.s.barrier",
            "fence syncscope(\"workgroup\") acquire",
        ],
    ),
    (
        "warp_barrier",
        &[
            "fence syncscope(\"wavefront\") release",
            "@llvm.amdgcn.wave.barrier",
        ],
    ),
    ("fence_block", &["fence syncscope(\"workgroup\") seq_cst"]),
    ("fence", &["fence syncscope(\"agent\") seq_cst"]),
    ("fence_system", &["fence seq_cst"]),
    ("votes", &["@llvm.amdgcn.icmp.i64"]),
    (
        "atomics_int",
        &[
            "atomicrmw add",
            "atomicrmw min",
            "atomicrmw max",
            "atomicrmw xchg",
            "atomicrmw and",
            "atomicrmw or",
            "atomicrmw xor",
            "cmpxchg",
            "syncscope(\"agent",
            "monotonic",
            "!seq_cst",
        ],
    ),
    (
        "atomics_unsigned_long_long",
        &["atomicrmw umin", "atomicrmw umax", "i64"],
    ),
    ("atomics_float", &["atomicrmw fadd", "float"]),
    ("atomics_double", &["atomicrmw fadd", "double"]),
    ("root", &["@llvm.sqrt.f32"]),
    ("inverse_root", &["@llvm.sqrt.f32", "fdiv"]),
    (
        "floats",
        &["@llvm.fma.f32", "@llvm.minnum.f32", "@llvm.round.f32"],
    ),
    (
        "doubles",
        &["@llvm.fma.f64", "@llvm.copysign.f64", "@llvm.rint.f64"],
    ),
    (
        "fast",
        &[
            "@llvm.amdgcn.sin.f32",
            "@llvm.amdgcn.cos.f32",
            "@llvm.exp2.f32",
            "@llvm.log2.f32",
        ],
    ),
    ("memory", &["addrspace(3)", "@llvm.amdgcn.s.barrier"]),
];

#[test]
fn reads_and_computes_what_amd_defines() {
    let Some(package) = package(KERNELS) else {
        return;
    };
    for release in support::share(RELEASES, 1, 2) {
        // clang 16 does not know gfx942.
        let targets: &[&str] = match release {
            16 => &["gfx90a", "gfx1100"],
            _ => &["gfx90a", "gfx942", "gfx1100"],
        };
        if build(&package, &format!("{HIP}targets = {targets:?}\n"), release).is_none() {
            return;
        }
        for target in targets {
            let title = format!("clang {release}, {target}");
            check(&title, &ir(&package, release, target), AMD_IR);
            let code = disassembly(&package, release, target);
            let shuffles = [
                "shuffle",
                "shuffle_up",
                "shuffle_down",
                "shuffle_xor",
                "shuffle_double",
            ];
            let facts = shuffles.map(|name| (name, &["ds_bpermute_b32", "!v_readlane"][..]));
            check(&title, &code, &facts);
            let lanes = if *target == "gfx1100" { ", 32" } else { ", 64" };
            check(&title, &code, &[("width", &["mov_b32", lanes])]);
            let image = package
                .at(OUT)
                .join(format!("offload/kernels/{target}/image"));
            let notes = support::run(llvm(release, "llvm-readelf").arg("--notes").arg(image));
            let bounds = notes
                .split(".symbol:")
                .filter(|kernel| kernel.contains(".max_flat_workgroup_size: 128\n"));
            let is_bounded = |kernel: &str| kernel.contains(".name:           bounded");
            let bounds: Vec<bool> = bounds.map(is_bounded).collect();
            assert_eq!(bounds, [true, true], "{title}: {notes}");
        }
    }
}

/// Offsets of sizes as LLVM's AMDGPUUsage has them: of implicit kernel arguments since code object version 5
/// (`hidden_group_size_x` and others), of the dispatch packet before.
#[test]
fn reads_sizes_where_the_code_object_version_has_them() {
    let Some(package) = package(KERNELS) else {
        return;
    };
    for (release, version) in [
        (16, "4"),
        (16, "5"),
        (19, "4"),
        (19, "5"),
        (22, "4"),
        (22, "5"),
    ] {
        let keys =
            format!("{HIP}targets = [\"gfx90a\"]\nflags = [\"-mcode-object-version={version}\"]\n");
        if build(&package, &keys, release).is_none() {
            return;
        }
        let text = ir(&package, release, "gfx90a");
        let (base, sizes, other) = match version {
            "4" => (
                "@llvm.amdgcn.dispatch.ptr",
                [4, 6, 8],
                "!@llvm.amdgcn.implicitarg.ptr",
            ),
            _ => (
                "@llvm.amdgcn.implicitarg.ptr",
                [12, 14, 16],
                "!@llvm.amdgcn.dispatch.ptr",
            ),
        };
        let title = format!("clang {release}, code object version {version}");
        for (kernel, offset) in ["size_x", "size_y", "size_z"].iter().zip(sizes) {
            check(
                &title,
                &text,
                &[(
                    kernel,
                    &[base, &format!("i64 {offset}\n"), "load i16", other],
                )],
            );
        }
        // Threads of the grid, in the packet, by those of a block; LLVM 22 knows that this is the number of blocks.
        for (kernel, place) in ["grid_x", "grid_y", "grid_z"].iter().zip([0, 1, 2]) {
            let packet = format!("i64 {}\n", 12 + 4 * place);
            let argument = format!("i64 {}\n", 4 * place);
            let facts: &[&str] = match (release, version, place) {
                (22, "5", 0) => &[base, "!udiv", "load i32", "!i64", other],
                (22, "5", _) => &[base, "!udiv", "load i32", &argument, other],
                _ => &[
                    "@llvm.amdgcn.dispatch.ptr",
                    &packet,
                    "load i32",
                    "udiv",
                    base,
                ],
            };
            check(&title, &text, &[(kernel, facts)]);
        }
    }
}

#[test]
fn shuffles_where_a_half_of_a_warp_cannot_read_the_other() {
    let Some(package) = package(KERNELS) else {
        return;
    };
    for release in support::share(RELEASES, 0, 2) {
        let keys = format!("{HIP}targets = [\"gfx1100\"]\nflags = [\"-mwavefrontsize64\"]\n");
        if build(&package, &keys, release).is_none() {
            return;
        }
        let code = disassembly(&package, release, "gfx1100");
        check(
            &format!("clang {release}"),
            &code,
            &[
                ("shuffle_xor", &["v_readlane_b32", "!ds_bpermute"]),
                ("width", &["64"]),
            ],
        );
    }
    // The lanes themselves, on the CPU.
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/build-plan/gpu_header/lanes.cpp");
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let run = |options: &[&str]| {
        let program = package.at("lanes");
        let mut clang = Command::new("clang-19");
        clang
            .args(["-x", "c++", "-std=c++11"])
            .args(options)
            .arg("-I")
            .arg(&headers);
        support::run(clang.arg(&source).arg("-o").arg(&program));
        let output = Command::new(program).output().unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    for options in [
        &["-DLANES=32"][..],
        &["-DLANES=64"],
        &["-DLANES=64", "-DHALVES", "-D__GFX10__"],
        &["-DLANES=64", "-DHALVES", "-D__GFX11__"],
    ] {
        assert_eq!(run(options), (true, String::new()), "{options:?}");
    }
    // That is what the program finds.
    assert!(!run(&["-DLANES=64", "-DHALVES"]).0);
}
