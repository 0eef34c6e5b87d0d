//! Names of nvcc's temporary files in the objects that it makes.
//!
//! The host's compiler reads a file of nvcc's, `/tmp/tmpxft_<process>_<number>-6_k.cudafe1.cpp` (CUDA 12 and 13), and names
//! it in the object's table of symbols and in its debug information. The number of the process would make each build's
//! object another one.

use crate::steps::task::regions::find;

const START: &[u8] = b"tmpxft_";
/// Hexadecimal digits of the process's number.
const DIGITS: usize = 8;

/// Puts zeros in the place of the process's number in each name.
pub(crate) fn without_process(bytes: &mut [u8]) {
    let mut start = 0;
    while let Some(found) = find(&bytes[start..], START) {
        start += found + START.len();
        let digits = bytes.get_mut(start..start + DIGITS);
        if let Some(digits) = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            digits.fill(b'0');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_everything_but_the_process() {
        // A name as nvcc 13.5 writes it, one that is cut off, and one without a number.
        let mut names =
            *b"\0tmpxft_0000566a_00000000-6_k.cudafe1.cpp\0tmpxft_functions\0tmpxft_0000";
        without_process(&mut names);
        assert_eq!(
            names.as_slice(),
            b"\0tmpxft_00000000_00000000-6_k.cudafe1.cpp\0tmpxft_functions\0tmpxft_0000"
        );
    }
}
