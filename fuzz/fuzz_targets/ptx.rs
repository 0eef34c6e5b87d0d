//! Any bytes as PTX and as CUDA fat binaries: no panic, and a fat binary that was written is read.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use offload_formats::container::fatbin::{FatbinImage, cuda_fatbin};
use offload_formats::container::kernels::{ptx_kernels, refused_in_ptx};
use offload_formats::format::fatbin::{self, FatbinKind};
use offload_formats::format::pieces;
use offload_formats::format::ptx;

fuzz_target!(|data: &[u8]| {
    let _ = fatbin::parse(data, 0..data.len() as u64).map_err(|error| error.to_string());
    let _ = (ptx::version(data), ptx::target(data));
    let names = BTreeSet::from(["k".to_owned()]);
    let _ = refused_in_ptx(data, &names).map_err(|error| error.to_string());
    for kernel in ptx_kernels(data).unwrap_or_default() {
        for argument in kernel.arguments {
            assert!(argument.offset + argument.size <= kernel.arguments_size);
        }
    }
    let kept = ptx::stripped(data);
    assert!(kept.len() <= data.len());
    let image = FatbinImage {
        processor: "compute_90a",
        image: data,
    };
    if let Ok(written) = cuda_fatbin(&[image, image]) {
        let bytes = pieces::to_bytes(&written.pieces, &[]).expect("texts are in memory");
        let bytes = bytes.as_slice();
        let entries = fatbin::parse(bytes, 0..bytes.len() as u64).expect("what was written");
        assert_eq!(entries.len(), 2);
        for (entry, place) in entries.iter().zip(written.images) {
            assert_eq!(
                (entry.kind, entry.processor.as_str()),
                (FatbinKind::Ptx, "sm_90a")
            );
            assert!(!entry.is_compressed() && entry.image.start == place.start);
            let text = bytes
                .get(place.start as usize..place.end as usize)
                .expect("a place inside");
            assert_eq!(text.strip_suffix(b"\0"), Some(&*kept));
        }
    }
});
