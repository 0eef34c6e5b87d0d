//! Bitcode that is written here, read by LLVM's tools.

use crate::support;

use std::fs;
use std::process::Command;
use support::{run, tool};

const TRIPLE: &str = "amdgcn-amd-amdhsa";

/// As `clang-19 --target=amdgcn-amd-amdhsa -S -emit-llvm` prints it; LLVM 22 brings it up to date.
const LAYOUT: &str = "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128-p9:192:256:256:32-i64:64\
    -v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9";

#[test]
fn writes_empty_functions_as_llvm_reads_them() {
    for word in ["llvm19", "llvm22"] {
        let Some(dis) = tool(word, &["llvm-dis"]) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("empty.bc");
        let long = "x".repeat(100);
        for names in [&[][..], &["__offload_threads$sum$256$"], &["a", &long, "b"]] {
            let bytes = offload_formats::format::bitcode::empty_functions(TRIPLE, LAYOUT, names);
            fs::write(&file, bytes).unwrap();
            let text = run(Command::new(&dis).arg(&file).args(["-o", "-"]));
            let lines = text.lines();
            let defined = lines.filter(|line| line.starts_with("define"));
            let expected = names.iter().map(|name| match name.contains('$') {
                true => format!("define hidden void @\"{name}\"() #0 {{"),
                false => format!("define hidden void @{name}() #0 {{"),
            });
            assert!(defined.eq(expected), "{text}");
            let attributes = "\nattributes #0 = { alwaysinline nounwind }\n";
            assert_eq!(text.contains(attributes), !names.is_empty(), "{text}");
            assert_eq!(text.matches("\n  ret void\n").count(), names.len());
            assert!(text.contains("\ntarget triple = \"amdgcn-amd-amdhsa\"\n"));
            if word == "llvm19" {
                assert!(text.contains(&format!("\ntarget datalayout = \"{LAYOUT}\"\n")));
            }
        }
    }
}

/// LLVM's tools find the new name, although the symbol table has no functions of LLVM.
#[test]
fn renames_a_function_as_llvm_reads_it() {
    for word in ["llvm19", "llvm22"] {
        let programs = ["llvm-as", "llvm-nm"].map(|program| tool(word, &[program]));
        let [Some(assembler), Some(nm)] = programs else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let [text, file] = ["k.ll", "k.bc"].map(|name| folder.path().join(name));
        fs::write(
            &text,
            "target triple = \"amdgcn-amd-amdhsa\"\ndeclare void @llvm.trap()\ndefine void @f() {\n  call void @llvm.trap()\n  ret void\n}\n",
        )
        .unwrap();
        run(Command::new(&assembler).arg(&text).arg("-o").arg(&file));
        let symbols = || run(Command::new(&nm).args(["--format=just-symbols"]).arg(&file));
        assert_eq!(symbols(), "f\n");
        let mut bytes = fs::read(&file).unwrap();
        offload_formats::format::bitcode::rename_function(&mut bytes, b"llvm.trap", b"offl.trap")
            .unwrap();
        fs::write(&file, bytes).unwrap();
        assert_eq!(symbols(), "f\noffl.trap\n");
    }
}
