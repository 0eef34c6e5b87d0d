//! Any bytes as a file to prune: no panic, an ELF file never grows, kept images keep their bytes, and the images of the
//! new file are those that were kept. The first byte is the choice.
#![no_main]

use std::ops::Range;

use libfuzzer_sys::fuzz_target;
use offload_formats::container::decompression_limit::DecompressionLimit;
use offload_formats::container::prune::{
    FatbinRecompression, PruneChoice, PrunedFile, PtxChoice, Recompression, prune,
};
use offload_formats::format::compressed_bundle::Compression;
use offload_formats::format::fatbin::FatbinCompressor;
use offload_formats::format::pieces::to_bytes;
use offload_formats::format::unpacked::Scratch;

const LIMIT: DecompressionLimit = DecompressionLimit::of(1 << 20);

fuzz_target!(|data: &[u8]| {
    let Some((first, file)) = data.split_first() else {
        return;
    };
    let ptx = match first & 1 {
        0 => PtxChoice::Keep,
        _ => PtxChoice::Drop,
    };
    if first & 16 != 0 {
        return recompress(file);
    }
    let names = ["gfx906", "gfx90a", "sm_80", "gfx11"];
    let names = vec![names[usize::from(first >> 2 & 3)].to_owned()];
    let choice = match first & 2 {
        0 => PruneChoice::keep(names, ptx),
        _ => PruneChoice::drop(names, ptx),
    };
    let scratch = Scratch::in_memory();
    let pruned = prune(file, &choice, LIMIT, &scratch).map_err(|error| error.to_string());
    let Ok(pruned) = pruned else {
        return;
    };
    let new = joined(&pruned, file, &scratch);
    assert_eq!(new.len() as u64, pruned.size);
    assert!(!file.starts_with(b"\x7fELF") || new.len() <= file.len());
    let part =
        |bytes: &[u8], range: &Range<u64>| bytes[range.start as usize..range.end as usize].to_vec();
    for (before, after) in &pruned.copied {
        assert_eq!(part(file, before), part(&new, after));
    }
    // The command refuses a result that cannot be read.
    let all = PruneChoice::drop(Vec::new(), PtxChoice::Keep);
    if let Ok(again) = prune(&new[..], &all, LIMIT, &Scratch::in_memory()) {
        assert_eq!(again.counts.kept, pruned.counts.kept);
        assert_eq!(again.size, pruned.size);
    }
});

/// Returns the new file.
fn joined(pruned: &PrunedFile, file: &[u8], scratch: &Scratch) -> Vec<u8> {
    let new = scratch.all();
    let new = new.read(&(0..new.size())).expect("memory can be read");
    to_bytes(&pruned.pieces, &[file, &new]).expect("pieces are inside of the inputs")
}

/// Compresses the bundles of a file: each image stays.
fn recompress(file: &[u8]) {
    let how = Recompression::Compress {
        bundles: Some(Compression::default()),
        fatbins: Some(FatbinRecompression {
            compressor: FatbinCompressor::Lz4,
            replaces: true,
        }),
    };
    let scratch = Scratch::in_memory();
    let Ok(changed) = prune(file, &PruneChoice::recompress(how), LIMIT, &scratch) else {
        return;
    };
    let new = joined(&changed, file, &scratch);
    assert_eq!(new.len() as u64, changed.size);
    assert!(!file.starts_with(b"\x7fELF") || new.len() <= file.len());
    assert!(changed.counts.removed.is_empty());
    let all = PruneChoice::drop(Vec::new(), PtxChoice::Keep);
    if let Ok(again) = prune(&new[..], &all, LIMIT, &Scratch::in_memory()) {
        assert_eq!(again.counts.kept, changed.counts.kept);
    }
}
