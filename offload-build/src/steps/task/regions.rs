//! Names of OpenMP's kernels that only one module has.
//!
//! Clang names a kernel `__omp_offloading_<device>_<inode>_<function>_l<line>` (`OpenMPIRBuilder`, LLVM 19 to 22), after
//! the file that contains it. Two modules with the same source have equal names, and their symbols are weak: the program
//! would run one module's kernel for both. So the two numbers are replaced by digits that depend on the module, too, in
//! host objects and in device images, before anything is linked. Names keep their length: in LLVM bitcode the names of
//! symbols are plain bytes of its string table, and no other place moves.
//!
//! The pointer to a variable of `declare target link`, `<variable>_decl_tgt_ref_ptr`, is weak as well, and each image has its own:
//! of two modules the host would keep one.

use crate::steps::task::file_numbers::{KERNEL, number_at};
use offload_formats::md5::Md5;

/// Ends of the names of pointers to variables, in the parts that stay and that are replaced.
const POINTER: [&[u8]; 2] = [b"_decl_tgt_", b"ref_ptr"];

/// Renames the kernels, and the pointers to linked variables, in an object or in bitcode; `module` is the same for all files of a
/// module.
pub(crate) fn rename(bytes: &mut [u8], module: u64) {
    rename_pointers(bytes, module);
    let mut start = 0;
    while let Some(found) = find(&bytes[start..], KERNEL) {
        start += found + KERNEL.len();
        let name = &mut bytes[start..];
        if let Some(number) = number_at(name) {
            let mut digits = digits(module, &number);
            let places = name.iter_mut().take(number.len());
            for place in places.filter(|place| **place != b'_') {
                if let Some(digit) = digits.next() {
                    *place = digit;
                }
            }
        }
    }
}

fn rename_pointers(bytes: &mut [u8], module: u64) {
    let [stays, replaced] = POINTER;
    let mut start = 0;
    while let Some(found) = find(&bytes[start..], stays) {
        start += found + stays.len();
        if bytes[start..].starts_with(replaced) {
            let places = bytes[start..].iter_mut().take(replaced.len());
            for (place, digit) in places.zip(digits(module, "")) {
                *place = digit;
            }
        }
    }
}

/// Returns true for the name of a symbol that belongs to a module's target regions and pointers to linked variables, renamed or
/// not.
pub(crate) fn is_own(symbol: &[u8]) -> bool {
    let kernel = find(symbol, KERNEL).and_then(|at| symbol.get(at + KERNEL.len()..));
    kernel.is_some_and(|name| number_at(name).is_some()) || find(symbol, POINTER[0]).is_some()
}

/// Returns the place of the first `text` in `bytes`.
pub(super) fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    let mut start = 0;
    loop {
        let rest = bytes.get(start..)?;
        start += rest.iter().position(|byte| *byte == first)?;
        if bytes.get(start..)?.starts_with(text) {
            return Some(start);
        }
        start += 1;
    }
}

/// Hexadecimal digits that stand for a file in a module: 32, as many as both numbers have at most.
fn digits(module: u64, number: &str) -> impl Iterator<Item = u8> + use<> {
    let mut hash = Md5::new();
    hash.update(module.to_le_bytes());
    hash.update(number);
    hash.finalize().into_iter().flat_map(|byte| {
        [byte >> 4, byte & 15].map(|digit| match digit {
            0..=9 => b'0' + digit,
            _ => b'a' + (digit - 10),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_each_module_names_of_its_own() {
        // As clang 19 and 22 have them in a host object.
        let names = "\0.__omp_offloading_fe00_9cb2bc_one_l9.region_id\0.offloading.entry.__omp_offloading_fe00_9cb2bc_one_l9\0\
            ___omp_offloading_fe00_1_two_l3\0__omp_offloading_entries\0__omp_offloading_fe";
        let renamed = |module| {
            let mut bytes = names.as_bytes().to_vec();
            rename(&mut bytes, module);
            String::from_utf8(bytes).unwrap()
        };
        let (one, other) = (renamed(1), renamed(2));
        assert_ne!(one, other);
        assert_eq!(one, renamed(1));
        for renamed in [&one, &other] {
            assert_eq!(renamed.len(), names.len());
            let file: Vec<&str> = renamed
                .split("__omp_offloading_")
                .filter_map(|name| name.split_once("_one_l9"))
                .map(|(number, _)| number)
                .collect();
            // One file, one number, of the same form.
            assert_eq!(file.len(), 2);
            assert_eq!(file[0], file[1]);
            assert_eq!(file[0].find('_'), Some(4));
            assert!(!renamed.contains("fe00_9cb2bc") && !renamed.contains("fe00_1_two"));
            assert!(renamed.ends_with("\0__omp_offloading_entries\0__omp_offloading_fe"));
        }
    }
}
