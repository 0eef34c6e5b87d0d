//! PTX in fat binaries and what is read of its kernels, against NVIDIA's `fatbinary` and `ptxas`.

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use offload_formats::container::fatbin::{FatbinImage, cuda_fatbin};
use offload_formats::container::kernels::{
    ArgumentKind, Kernel, kernels, ptx_kernels, refused_in_ptx,
};
use offload_formats::format::pieces;
use support::Random;

const KERNELS: &str = include_str!("../kernels_cuda/kernels.ptx");
/// What `fatbinary` and a lexer of PTX may stumble over.
const PIECES: [&[u8]; 26] = [
    b" ", b" ", b"\t", b"\n", b"\r", b"\r\n", b"\x0b", b"\x0c", b"/", b"*", b"//", b"/*", b"*/",
    b"\"", b"\\", b"'", b";", b"\xff", b"\0", b"a", b".entry", b"k", b"(", b")", b"{", b"}",
];

#[test]
fn keeps_ptx_as_nvidias_tool_does() {
    let Some(fatbinary) = support::tool("cuda", &["fatbinary"]) else {
        return;
    };
    let Some(ptxas) = support::tool("cuda", &["ptxas"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let cubin = folder.path().join("k.cubin");
    assemble(&ptxas, "sm_80", &head("7.8", "sm_80"), &cubin).unwrap();
    let cubin = fs::read(&cubin).unwrap();
    let mut random = Random::new();
    let mut cases = 0;
    for _ in 0..250 {
        // Cubins and PTX for several processors, in any order.
        let count = 1 + random.below(3);
        let mut images: Vec<(String, Vec<u8>)> = Vec::new();
        for _ in 0..count {
            if random.below(4) == 0 {
                images.push(("sm_80".to_owned(), cubin.clone()));
                continue;
            }
            let number = *random.pick(&["50", "75", "80", "90", "90a", "100f", "103", "121a"]);
            let version = *random.pick(&["1.4", "7.8", "8.0", "9.3", "12.10"]);
            let mut text = random.pick(&[&b""[..], b"// k\n", b"\n\t"]).to_vec();
            text.extend(format!(".version{}{version}\n", random.pick(&[" ", "\t", "  "])).bytes());
            let pieces = (0..random.below(30)).map(|_| *random.pick(&PIECES));
            text.extend(pieces.flatten());
            images.push((format!("compute_{number}"), text));
        }
        let mut command = Command::new(&fatbinary);
        let output = folder.path().join("theirs");
        command
            .args(["-64", "--compress=false", "--create"])
            .arg(&output);
        for (index, (processor, image)) in images.iter().enumerate() {
            let path = folder.path().join(index.to_string());
            fs::write(&path, image).unwrap();
            let (kind, number) = match processor.split_once('_').unwrap() {
                ("sm", number) => ("elf", number),
                (_, number) => ("ptx", number),
            };
            command.arg(format!(
                "--image3=kind={kind},sm={number},file={}",
                path.display()
            ));
        }
        support::run(&mut command);
        let ours: Vec<FatbinImage<'_>> = images
            .iter()
            .map(|(processor, image)| FatbinImage {
                processor,
                image: &**image,
            })
            .collect();
        let ours = cuda_fatbin(&ours).unwrap();
        let inputs: Vec<&[u8]> = images.iter().map(|(_, image)| &**image).collect();
        let ours = pieces::to_bytes(&ours.pieces, &inputs).unwrap();
        assert_eq!(ours, fs::read(&output).unwrap(), "{images:?}");
        cases += 1;
    }
    println!("{cases} fat binaries");
}

/// Types, alignments and forms of parameters, comments and line ends.
const FORMS: &str = r#"
.visible .entry types(.param .u8 a, .param .b16 b, .param .f32 c, .param .align 16 .b8 s[3], .param .u64 .ptr .global .align 16 p,
    .param .b128 q, .param .s8 r)
.maxntid 4, 8 .pragma "a ( b ; {"; { ret; }
.visible .entry /* a ( b */ arrays ( // )
    .param .u32 a[3],
    .param .b64 b[0x2], .param .b8 c[010], .param .align 4 .v2 .f32 v[2], .param .b8 w[5U], .param .f64 z
)
.reqntid 0x10
.minnctapersm 2
{ { .reg .b32 r; } ret; }
.weak .entry $odd$name(.param .align 8 .u32 q, .param .u8 last){ ret; }
.visible .entry twice(.param .u32 a);
.visible .entry twice(.param .u32 a) .maxntid 7, 3, 2 { ret; }
.entry local(.param .u32 a) { ret; }
.func (.param .b32 out) device(.param .b64 a[9], .param .b8 b) { ret; }
"#;

#[test]
fn says_of_kernels_what_ptxas_makes_of_them() {
    let Some(ptxas) = support::tool("cuda", &["ptxas"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let cubin = folder.path().join("k.cubin");
    let mut compared = 0;
    // With what is the system's of shared memory where a text has some that is dynamic.
    for (processor, version, reserved) in [
        ("sm_75", "8.3", 0),
        ("sm_80", "8.3", 0),
        ("sm_90a", "8.3", 1024),
        ("sm_100", "8.6", 1024),
        ("sm_120", "8.7", 1024),
    ] {
        for (text, reserved) in [(KERNELS, reserved), (FORMS, 0)] {
            let text = head(version, processor) + text;
            if let Err(message) = assemble(&ptxas, processor, &text, &cubin) {
                // An older or newer CUDA has other processors.
                assert!(message.contains("gpu-name"), "{message}");
                continue;
            }
            let theirs = kernels(&fs::read(&cubin).unwrap()).unwrap();
            let ours = ptx_kernels(text.as_bytes()).unwrap();
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(theirs) {
                compared += 1;
                // `.ptr` is lost in a cubin.
                let mut arguments = theirs.arguments.clone();
                if ours.name == "types" {
                    arguments[4].kind = Some(ArgumentKind::Pointer);
                }
                let expected = changed(theirs, |kernel| {
                    kernel.arguments = arguments;
                    kernel.shared_size -= reserved;
                    kernel.private_size = 0;
                    kernel.registers = None;
                    kernel.has_dynamic_stack = None;
                    kernel.barriers = None;
                    kernel.constant_size = None;
                    kernel.code_size = None;
                });
                assert_eq!(*ours, expected, "{processor}");
            }
        }
    }
    assert!(compared >= 24, "{compared}");
    // An older version has no linkage: each entry is the host's.
    let old = ptx_kernels((head("3.0", "sm_30") + FORMS).as_bytes()).unwrap();
    let names: Vec<&str> = old.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["$odd$name", "arrays", "local", "twice", "types"]);
}

#[test]
fn adds_up_shared_memory_that_a_kernel_and_its_functions_have() {
    let Some(ptxas) = support::tool("cuda", &["ptxas"]) else {
        return;
    };
    let text = head("7.8", "sm_80")
        + ".shared .align 16 .b8 outside[32];\n.shared .align 16 .b8 other[64];\n.extern .shared .align 16 .b8 dynamic[];\n\
           .func helper() { .shared .align 16 .b8 h[48]; .reg .u32 r; st.shared.u32 [h], r; ret; }\n\
           .func unused() { .shared .align 16 .b8 u[96]; .reg .u32 r; st.shared.u32 [u], r; ret; }\n\
           .visible .entry none() { ret; }\n\
           .visible .entry own() { .shared .align 16 .b8 a[16], b[16]; .shared .f32 c[4]; st.shared.u8 [a], 1; ret; }\n\
           .visible .entry takes() { st.shared.u8 [outside], 1; st.shared.u8 [dynamic], 1; ret; }\n\
           .visible .entry calls() { call helper; st.shared.u8 [outside], 1; ret; }\n";
    let folder = tempfile::tempdir().unwrap();
    let cubin = folder.path().join("k.cubin");
    assemble(&ptxas, "sm_80", &text, &cubin).unwrap();
    let sizes = |kernels: Vec<Kernel>| -> Vec<(String, u32)> {
        let kernels = kernels.into_iter();
        kernels
            .map(|kernel| (kernel.name, kernel.shared_size))
            .collect()
    };
    let ours = sizes(ptx_kernels(text.as_bytes()).unwrap());
    let expected = [("calls", 80), ("none", 0), ("own", 48), ("takes", 32)];
    assert_eq!(ours, expected.map(|(name, size)| (name.to_owned(), size)));
    assert_eq!(ours, sizes(kernels(&fs::read(&cubin).unwrap()).unwrap()));
}

#[test]
fn names_functions_that_ptxas_lacks() {
    let Some(ptxas) = support::tool("cuda", &["ptxas"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let cubin = folder.path().join("k.cubin");
    let none = BTreeSet::new();
    for (declared, called, is_there) in [
        (".extern .func twice;", "twice", false),
        (
            ".visible .func twice;\n.visible .func twice { ret; }",
            "twice",
            true,
        ),
        (".extern .func twice;\n.func once { ret; }", "once", true),
        (".extern .func vprintf;", "vprintf", true),
        (".extern .func malloc;", "malloc", true),
        (".extern .func free;", "free", true),
        (".extern .func __assertfail;", "__assertfail", true),
        (".extern .func memcpy;", "memcpy", false),
    ] {
        let text = head("7.8", "sm_80")
            + &format!("{declared}\n.visible .entry k() {{ call {called}; ret; }}\n");
        let theirs = assemble(&ptxas, "sm_80", &text, &cubin);
        assert_eq!(theirs.is_ok(), is_there, "{text}");
        let ours = refused_in_ptx(text.as_bytes(), &none).unwrap().undefined;
        let missing: &[&str] = if is_there { &[] } else { &[called] };
        assert_eq!(ours, missing, "{text}");
        if let Err(message) = theirs {
            assert!(
                message.contains(&format!("Unresolved extern function '{called}'")),
                "{message}"
            );
        }
    }
}

/// ptxas makes variables of zeros of those that are only declared, and warns.
#[test]
fn names_variables_that_ptxas_warns_of() {
    let Some(ptxas) = support::tool("cuda", &["ptxas"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let cubin = folder.path().join("k.cubin");
    for (declared, is_there) in [
        (".extern .global .u32 far;", false),
        (".extern .const .align 4 .u32 far;", false),
        (".global .u32 far;", true),
    ] {
        let space = if declared.contains(".const") {
            "const"
        } else {
            "global"
        };
        let text = head("7.8", "sm_80")
            + &format!(
                "{declared}\n.visible .entry k(.param .u64 p) {{ .reg .b32 %r<2>; .reg .b64 %d<2>; ld.param.u64 %d1, [p]; ld.{space}.u32 %r1, [far]; st.global.u32 [%d1], %r1; ret; }}\n"
            );
        let path = folder.path().join("k.ptx");
        fs::write(&path, &text).unwrap();
        let mut command = Command::new(&ptxas);
        let output = command
            .args(["-arch", "sm_80", "-o"])
            .args([&cubin, &path])
            .output()
            .unwrap();
        let messages =
            String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        assert!(output.status.success(), "{text}{messages}");
        assert_eq!(
            messages.contains("Unresolved extern variable 'far'"),
            !is_there,
            "{text}{messages}"
        );
        let ours = refused_in_ptx(text.as_bytes(), &BTreeSet::new())
            .unwrap()
            .undefined;
        let missing: &[&str] = if is_there { &[] } else { &["far"] };
        assert_eq!(ours, missing, "{text}");
    }
}

/// Shared memory has no address before a kernel runs.
#[test]
fn names_variables_that_ptxas_cannot_initialize() {
    let Some(ptxas) = support::tool("cuda", &["ptxas"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let cubin = folder.path().join("k.cubin");
    let shared = ".shared .align 4 .b8 tile[64];\n.extern .shared .align 1 .b8 more[];\n.global .b8 far[64];\n\
                  .global .align 4 .b8 seven[4] = {7, 0, 0, 0};\n";
    for (declared, expected) in [
        (
            ".global .align 8 .u64 p[2] = {generic(tile), generic(tile)+16};",
            &["p"][..],
        ),
        (
            ".global .align 8 .u64 p[2] = {generic(far), generic(more)};",
            &["p"],
        ),
        (".const .align 8 .u64 p = generic(tile);", &["p"]),
        (
            ".global .align 8 .u64 p[2] = {generic(far), generic(far)+16};",
            &[],
        ),
        (".global .align 8 .u64 tile_of[2] = {generic(far), 0};", &[]),
        (".global .align 8 .u64 p;", &[]),
        (".global .align 8 .u64 p = tile;", &["p"]),
        (".global .align 8 .u64 p = generic(own);", &["p"]),
        (
            ".global .b8 own[8];\n.global .align 8 .u64 p = generic(own);",
            &[],
        ),
    ] {
        let text = head("7.8", "sm_80")
            + shared
            + declared
            + "\n.visible .entry k() { .shared .align 4 .b8 own[8]; .reg .b32 %r<2>; ld.shared.u32 %r1, [tile]; ret; }\n";
        let theirs = assemble(&ptxas, "sm_80", &text, &cubin);
        assert_eq!(theirs.is_ok(), expected.is_empty(), "{text}{theirs:?}");
        let ours = refused_in_ptx(text.as_bytes(), &BTreeSet::new()).unwrap();
        let ours = ours.initialized_with_shared;
        assert_eq!(ours, expected, "{text}");
    }
}

#[test]
fn names_what_the_host_registers_and_ptx_lacks() {
    let text = head("7.8", "sm_80")
        + ".visible .global .align 4 .u32 counter;\n.visible .const .align 8 .b8 table[16] = {1, 2};\n\
           .extern .global .u32 far;\n.visible .global .attribute(.managed) .align 4 .b8 managed[4];\n\
           .visible .entry k() { ret; }\n.entry local() { ret; }\n";
    let names = ["counter", "far", "k", "local", "managed", "other", "table"];
    let names: BTreeSet<String> = names.map(str::to_owned).into();
    let missing = refused_in_ptx(text.as_bytes(), &names).unwrap().undefined;
    assert_eq!(missing, ["far", "local", "other"]);
}

#[test]
fn rejects_what_makes_no_sense() {
    let error = |text: &str| ptx_kernels(text.as_bytes()).unwrap_err().to_string();
    for (text, problem) in [
        (
            ".version 1.4 .entry k(.param .u32 a",
            "kernel `k`: parameter 0 `a`: its declaration has no end",
        ),
        (
            ".version 1.4 .entry k(.param a) { }",
            "kernel `k`: parameter 0 `a`: its type is unknown",
        ),
        (
            ".version 1.4 .entry k(.param .u8 a, .param .u8 b[x]) { }",
            "kernel `k`: parameter 1 `b`: expected a number, found `x`",
        ),
        (
            ".version 1.4 .entry k(.param .align 3 .u8 a) { }",
            "kernel `k`: parameter 0 ``: its alignment 3 is not a power of two",
        ),
        (
            ".version 1.4 .entry k(.param .texref t) { }",
            "kernel `k`: parameter 0 ``: a `.texref` cannot be passed in the argument buffer",
        ),
        (
            ".version 1.4 .entry k(.param .u8 a[0xffffffffffffffff], .param .u8 b) { }",
            "kernel `k`: the offset of parameter `a` does not fit in 32 bits",
        ),
        (
            ".version 1.4 .entry k(.param .u64 a[0xffffffffffffffff]) { }",
            "kernel `k`: parameter 0 `a`: its size does not fit in 64 bits",
        ),
        (
            ".version 1.4 .entry k(.param .u8 a; ) { }",
            "kernel `k`: its parameter list has no end",
        ),
        (
            ".version 1.4 .entry k() .maxntid 65536, 65536 { }",
            "kernel `k`: 65536 by 65536 by 1 threads do not fit in 32 bits",
        ),
        (
            ".version 1.4 .entry k() .reqntid 0x100000000 { }",
            "kernel `k`: 4294967296 threads do not fit in 32 bits",
        ),
        (".version 1.4 .entry k()", "kernel `k`: its body is missing"),
        (".version 1.4 .entry k() {", "a function's body has no end"),
        (
            ".shared .u8 s",
            "shared variable `s`: its declaration has no end",
        ),
        (
            ".shared .align 0x8000000000000000 .b8 s[9];\n.visible .entry k() { st.shared.u8 [s], 1; } .shared .u8 t;\n.visible .entry l() { .shared .b8 a[0xffffffff]; st.shared.u8 [t], 1; }",
            "kernel `l`: its shared memory does not fit in 32 bits",
        ),
    ] {
        assert_eq!(error(text), problem, "{text}");
    }
}

#[test]
fn survives_every_truncation_and_every_single_byte_change() {
    let text = head("8.3", "sm_80") + FORMS;
    for size in 0..text.len() {
        let _ = ptx_kernels(&text.as_bytes()[..size]);
    }
    let mut text = text.into_bytes();
    for place in 0..text.len() {
        for changed in [b' ', b'"', b'(', b'}', b'/', b'*', 0xff] {
            let byte = std::mem::replace(&mut text[place], changed);
            let _ = ptx_kernels(&text);
            let _ = refused_in_ptx(&text, &BTreeSet::new());
            text[place] = byte;
        }
    }
    let mut random = Random::new();
    for _ in 0..2000 {
        let pieces = (0..random.below(40)).map(|_| *random.pick(&PIECES));
        let text: Vec<u8> = pieces.flatten().copied().collect();
        let _ = ptx_kernels(&text);
        let image = FatbinImage {
            processor: "compute_80",
            image: &*text,
        };
        let _ = cuda_fatbin(&[image]);
    }
}

fn head(version: &str, processor: &str) -> String {
    format!(".version {version}\n.target {processor}\n.address_size 64\n")
}

/// Makes a cubin; otherwise what ptxas says.
fn assemble(ptxas: &Path, processor: &str, text: &str, cubin: &Path) -> Result<(), String> {
    let source: PathBuf = cubin.with_extension("ptx");
    fs::write(&source, text).unwrap();
    let mut command = Command::new(ptxas);
    command.arg(format!("-arch={processor}")).arg(source);
    let output = command.arg("-o").arg(cubin).output().unwrap();
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Returns a kernel with some values changed.
fn changed(mut kernel: Kernel, set: impl FnOnce(&mut Kernel)) -> Kernel {
    set(&mut kernel);
    kernel
}
