//! Text bundles at link time, which clang's older driver makes with `-S`: alone, in archives, compressed.
//!
//! What LLVM does with them: clang's older driver (16, 19, 22) takes such files apart, assembles `.s` and
//! compiles `.ll`, for the host and for each device; of its own `-S -fgpu-rdc` it cannot read the device's
//! part, LLVM IR in a file of assembly. Archives of them go to the host's linker as they are.

#![allow(clippy::unwrap_used)] // a test fails by panicking

#[path = "linker_hip_support.rs"]
mod support;

use std::fs;

use support::{DECLARED, ENTRIES, Place, one_kernel};

const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";
const GFX90A: &str = "hip-amdgcn-amd-amdhsa--gfx90a";

/// `<name>-<processor>.<extension>`: device code for each processor, as text.
fn device_texts(place: &Place, name: &str, source: &str, args: &[&str], extension: &str) {
    place.write(&format!("{name}.hip"), source);
    for processor in ["gfx906", "gfx90a"] {
        let mut compile = place.command(&place.clang);
        compile.args(["-x", "hip", "-nogpulib", "-nogpuinc", "-O2", "-S"]);
        compile.args(["--offload-device-only", "--no-gpu-bundle-output"]);
        compile
            .arg(format!("--offload-arch={processor}"))
            .args(args);
        compile.args([
            &format!("{name}.hip"),
            "-o",
            &format!("{name}-{processor}.{extension}"),
        ]);
        support::run(&mut compile);
    }
}

#[test]
fn links_llvm_ir_and_assembly_for_devices() {
    for release in ["llvm19", "llvm22"] {
        let Some(place) = Place::new(release) else {
            continue;
        };
        place.kernel("one", "--offload-new-driver");
        let helper = format!("{DECLARED}__device__ int helper(int x) {{ return x + 1; }}");
        device_texts(
            &place,
            "helper",
            &helper,
            &["-fgpu-rdc", "-emit-llvm"],
            "ll",
        );
        let other = format!("{DECLARED}__global__ void other(int *p) {{ *p = 7; }}");
        device_texts(&place, "other", &other, &[], "s");
        assert!(
            fs::read_to_string(place.path("other-gfx906.s"))
                .unwrap()
                .contains(".amdgcn_target")
        );
        for compress in [&[][..], &["-compress"]] {
            let [ir, assembly] = [("helper", "ll"), ("other", "s")].map(|(name, kind)| {
                let files =
                    ["gfx906", "gfx90a"].map(|processor| format!("{name}-{processor}.{kind}"));
                let entries = [(GFX906, files[0].as_str()), (GFX90A, files[1].as_str())];
                let output = format!("{name}.{kind}");
                place.bundle(kind, &entries, &output, compress);
                output
            });
            place.archive("libtexts.a", &[&ir, &assembly]);
            for inputs in [&["one.o", &ir, &assembly][..], &["one.o", "libtexts.a"]] {
                assert_eq!(place.registered(inputs), one_kernel("one"), "{release}");
                assert_eq!(place.entries(), ENTRIES, "{release}");
                for processor in ["gfx906", "gfx90a"] {
                    let symbols = place.symbols(processor);
                    for kernel in ["_Z3onePi.kd", "_Z5otherPi.kd"] {
                        assert!(symbols.iter().any(|name| name == kernel), "{symbols:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn says_that_source_is_not_compiled() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    place.kernel("one", "--offload-new-driver");
    place.write("source.hipi", "int x;\n");
    place.bundle("hipi", &[(GFX906, "source.hipi")], "all.hipi", &[]);
    place.archive("liball.a", &["all.hipi"]);
    for (input, from) in [("all.hipi", "all.hipi"), ("liball.a", "liball.a(all.hipi)")] {
        let link = place.link(&["one.o", input]);
        let said = String::from_utf8_lossy(&link.stderr);
        let expected = format!(
            "error: {from}: entry `{GFX906}`: the code for amdgcn-amd-amdhsa gfx906 is source, which no linker compiles\n"
        );
        assert!(said.contains(&expected), "{said}");
        assert_eq!(link.status.code(), Some(1), "{said}");
        assert!(!place.path("x").exists());
    }
}
