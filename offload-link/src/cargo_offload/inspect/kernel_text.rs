//! Facts about kernels, for people.

use offload_formats::container::kernels::Kernel;

use crate::cargo_offload::text;

/// Returns what a kernel needs, in the vendor's terms: registers, memory, limits, arguments, code.
pub(super) fn facts(kernel: &Kernel, triple: &str) -> String {
    let is_amd = triple.starts_with("amdgcn");
    let registers = match is_amd {
        true => ["VGPR", "SGPR", "AGPR"],
        false => ["register", "scalar register", "accumulation register"],
    };
    let (shared, private) = match is_amd {
        true => ("LDS", "scratch"),
        false => ("shared memory", "local memory"),
    };
    let mut facts = Vec::new();
    facts.extend(kernel.is_local.then(|| "static".to_owned()));
    let counts = [
        kernel.registers,
        kernel.scalar_registers,
        kernel.accumulation_registers,
    ];
    for (number, noun) in counts.into_iter().zip(registers) {
        facts.extend(number.map(|number| text::count(number as usize, noun)));
    }
    for (size, what) in [(kernel.shared_size, shared), (kernel.private_size, private)] {
        if size > 0 {
            facts.push(format!("{what} {}", text::size(size.into())));
        }
    }
    if kernel.has_dynamic_stack == Some(true) {
        facts.push("dynamic stack".to_owned());
    }
    let spills = [kernel.spilled_registers, kernel.spilled_scalar_registers];
    for (number, noun) in spills.into_iter().zip(registers) {
        let number = number.filter(|number| *number > 0);
        facts.extend(number.map(|number| format!("spills {}", text::count(number as usize, noun))));
    }
    match (kernel.required_threads, kernel.max_threads) {
        (Some([x, y, z]), _) => facts.push(format!("{x}x{y}x{z} threads")),
        (None, Some(threads)) => facts.push(format!("at most {threads} threads")),
        (None, None) => {}
    }
    let barriers = kernel.barriers.filter(|number| *number > 0);
    facts.extend(barriers.map(|number| text::count(number as usize, "barrier")));
    let wavefront = kernel.wavefront.filter(|_| is_amd);
    facts.extend(wavefront.map(|threads| format!("wave{threads}")));
    let arguments = kernel.arguments.len();
    facts.push(match arguments {
        0 => "no arguments".to_owned(),
        _ => {
            let size = text::size(kernel.arguments_size.into());
            format!("{} ({size})", text::count(arguments, "argument"))
        }
    });
    facts.extend(
        kernel
            .code_size
            .map(|size| format!("code {}", text::size(size))),
    );
    facts.join(", ")
}
