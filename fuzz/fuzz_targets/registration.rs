//! Any names, places and blobs: every form of every registration is written or refused, without a panic, and an
//! object that is written can be read back, with its images in it.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use offload_formats::container::coff;
use offload_formats::container::elf::{Elf, Machine, SymbolTable};
use offload_formats::format::offload_entry;
use offload_formats::format::pieces::Embedded;
use offload_formats::names::{ImageKind, Triple};
use offload_formats::registration::coff::WindowsAbi;
use offload_formats::registration::deferred::Deferred;
use offload_formats::registration::fat_binary::{FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::{HipFatBinary, HipSymbols};
use offload_formats::registration::openmp::{Blob, BlobSection, EntryTable, OpenMp};
use offload_formats::registration::sycl::{Sycl, SyclImage};
use offload_formats::registration::{Global, RegistrationError};

fn known(content: Embedded<'_>) -> &[u8] {
    match content {
        Embedded::Bytes(bytes) => bytes,
        _ => &[],
    }
}

/// What is left of the input; zeros when that is over.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, size: usize) -> &'a [u8] {
        let (taken, left) = self.0.split_at(size.min(self.0.len()));
        self.0 = left;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    /// Small as a rule, and sometimes as large as there is.
    fn number(&mut self) -> u64 {
        match self.byte() {
            byte @ 0..=0xf7 => byte.into(),
            byte => u64::MAX >> (8 * (byte & 7)) >> (self.byte() & 7),
        }
    }

    fn blob(&mut self) -> &'a [u8] {
        let size = self.byte();
        self.bytes(size.into())
    }

    fn text(&mut self) -> &'a str {
        let size = self.byte() % 32;
        let bytes = self.bytes(size.into());
        std::str::from_utf8(bytes).unwrap_or("name")
    }

    fn table(&mut self) -> EntryTable<'a> {
        let section = self.text();
        match self.byte() % 3 {
            2 => EntryTable::Symbol {
                symbol: section,
                size: self.number(),
            },
            0 => EntryTable::StartStop {
                section,
                entries: &[],
            },
            _ => EntryTable::SectionRange {
                section,
                size: self.number(),
                flags: self.number(),
                alignment: self.number(),
            },
        }
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.byte() % 4).map(|_| item(self)).collect()
    }
}

fn elf(object: Result<Vec<u8>, RegistrationError>, blobs: &[&[u8]]) {
    let Ok(bytes) = object.map_err(|error| error.to_string()) else {
        return;
    };
    let elf = Elf::parse(&bytes[..], 0..bytes.len() as u64).expect("it is ELF");
    let names = elf.names().expect("sections have names");
    for section in elf.sections().skip(1) {
        names.of(&section).expect("the name is in the table");
        elf.check(&section).expect("the section is in the file");
    }
    elf.symbols(SymbolTable::All).expect("symbols can be read");
    has(&bytes, blobs);
}

fn windows(object: Result<Vec<u8>, RegistrationError>, blobs: &[&[u8]]) {
    let Ok(bytes) = object.map_err(|error| error.to_string()) else {
        return;
    };
    coff::sections(&bytes[..], 0..bytes.len() as u64).expect("it is COFF");
    has(&bytes, blobs);
}

fn has(bytes: &[u8], blobs: &[&[u8]]) {
    for blob in blobs.iter().filter(|blob| !blob.is_empty()) {
        assert!(bytes.windows(blob.len()).any(|part| part == *blob));
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let machines = [(62, 0), (183, 0), (243, 5)];
    let (number, flags) = machines[usize::from(input.byte()) % machines.len()];
    let host = Machine { number, flags };
    let triples = [
        "x86_64-unknown-linux-gnu",
        "aarch64-linux-gnu",
        "x86_64-pc-windows-msvc",
        "arm64-apple-macos",
    ];
    let triple =
        Triple::parse(triples[usize::from(input.byte()) % triples.len()]).expect("a triple");
    let section = [BlobSection::Offloading, BlobSection::Finished][usize::from(input.byte() % 2)];
    let globals = input.list(|input| {
        let name = input.text();
        match input.byte() % 3 {
            0 => Global::Bytes {
                name,
                offset: input.number(),
                size: input.number(),
            },
            1 => Global::Anchor { name },
            _ => Global::Marker { name },
        }
    });
    let table = input.table();
    let blobs = input.list(|input| Blob {
        bytes: Embedded::Bytes(input.blob()),
        image: input.number()..input.number(),
    });
    let contents: Vec<&[u8]> = blobs.iter().map(|blob| known(blob.bytes)).collect();
    let paths: Vec<&Path> = blobs.iter().map(|_| Path::new("a \"b\\\n")).collect();
    let abis = [WindowsAbi::Msvc, WindowsAbi::Gnu];

    let openmp = OpenMp {
        images: &blobs,
        table,
        section,
        globals: &globals,
    };
    elf(openmp.to_object(host), &contents);
    let _ = (openmp.to_c(&paths), openmp.to_c(&[]), openmp.to_ir(&triple));
    abis.into_iter()
        .for_each(|abi| windows(openmp.to_coff(abi), &contents));

    let layouts = [
        offload_entry::EntryLayout::V19,
        offload_entry::EntryLayout::V20,
        offload_entry::EntryLayout::V21,
    ];
    let tables = input.list(|input| HostTable {
        layout: layouts[usize::from(input.byte()) % layouts.len()],
        table: input.table(),
    });
    let (names, handles) = (input.list(Input::text), input.list(Input::text));
    let symbols = HipSymbols {
        fat_binary: &names,
        handle: &handles,
    };
    let bytes = contents.first().copied().unwrap_or_default();
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let fat = FatBinary {
            runtime,
            bytes: Embedded::Bytes(bytes),
            tables: &tables,
            symbols,
            globals: &globals,
        };
        elf(fat.to_object(host), &[bytes]);
        let _ = (fat.to_c(Path::new("f")), fat.to_ir(&triple));
        abis.into_iter()
            .for_each(|abi| windows(fat.to_coff(abi), &[bytes]));
    }
    let hip = HipFatBinary {
        bytes: Embedded::Bytes(bytes),
        symbols,
    };
    elf(hip.to_object(host), &[bytes]);
    let _ = hip.to_c(Path::new("f"));

    let images = input.list(|input| SyclImage {
        bytes: Embedded::Bytes(input.blob()),
        kind: ImageKind::from_raw(input.number() as u16),
        triple: input.text(),
        symbols: input.blob(),
        compile_options: input.blob(),
        link_options: input.blob(),
    });
    let sycl = Sycl {
        images: &images,
        section,
        globals: &globals,
    };
    let contents: Vec<&[u8]> = images.iter().map(|image| known(image.bytes)).collect();
    let paths: Vec<&Path> = images.iter().map(|_| Path::new("f")).collect();
    elf(sycl.to_object(host), &contents);
    let _ = (sycl.to_c(&paths), sycl.to_ir(&triple));

    let deferred = Deferred {
        binaries: Embedded::Bytes(bytes),
        anchor: input.text(),
    };
    elf(deferred.to_object(host), &[bytes]);
});
