//! Any bytes behind the magic of COFF, PE or Mach-O, which take a fuzzer long to find: no panic, and
//! images lie inside of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::container::{FoundItem, find};

const MAGICS: [&[u8]; 7] = [
    b"\x64\x86",
    b"\0\0\xff\xff\x02\0",
    b"MZ",
    b"\xcf\xfa\xed\xfe",
    b"\xfe\xed\xfa\xce",
    b"\xca\xfe\xba\xbe",
    b"\xca\xfe\xba\xbf",
];

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let file = [MAGICS[usize::from(*choice) % MAGICS.len()], rest].concat();
    for item in find(&file[..]).into_iter().flatten() {
        if let FoundItem::Image(image) = item {
            assert!(image.content(&file[..]).is_some());
        }
    }
});
