//! The sections of COFF objects and PE images, through the crate `object`.

use object::read::coff::{CoffHeader, SectionTable};
use object::read::pe::ImageNtHeaders;
use object::read::{Result, StringTable};
use object::{LittleEndian, ReadRef, U32, pe};

/// The sections that have content in the file.
pub(super) struct Sections<'d> {
    pub(super) list: Vec<Section<'d>>,
    pub(super) names: Names,
}

/// A section; numbers are as its header has them.
pub(super) struct Section<'d> {
    pub(super) header: &'d pe::ImageSectionHeader,
    /// From the start of the object or image.
    pub(super) offset: u32,
    /// In bytes, without what fills up the file behind it.
    pub(super) size: u32,
}

/// Where the names are that are longer than eight bytes: behind the symbols.
#[derive(Clone, Copy)]
pub(super) struct Names {
    /// From the start of the object or image, where there are symbols.
    offset: Option<u64>,
}

pub(super) fn of_object<'d, H: CoffHeader, R: ReadRef<'d>>(data: R) -> Result<Sections<'d>> {
    let mut offset = 0;
    let header = H::parse(data, &mut offset)?;
    let sections = header.sections(data, offset)?;
    Ok(Sections {
        list: list(&sections, pe::ImageSectionHeader::coff_file_range),
        names: Names::behind_symbols(header),
    })
}

pub(super) fn of_image<'d, H: ImageNtHeaders, R: ReadRef<'d>>(data: R) -> Result<Sections<'d>> {
    let mut offset = pe::ImageDosHeader::parse(data)?.nt_headers_offset().into();
    let (headers, _) = H::parse(data, &mut offset)?;
    let sections = headers.sections(data, offset)?;
    Ok(Sections {
        list: list(&sections, |header| Some(header.pe_file_range())),
        names: Names::behind_symbols(headers.file_header()),
    })
}

fn list<'d>(
    sections: &SectionTable<'d>,
    range: impl Fn(&pe::ImageSectionHeader) -> Option<(u32, u32)>,
) -> Vec<Section<'d>> {
    let section = |header| {
        let (offset, size) = range(header)?;
        Some(Section {
            header,
            offset,
            size,
        })
    };
    sections.iter().filter_map(section).collect()
}

impl Names {
    fn behind_symbols<H: CoffHeader>(header: &H) -> Self {
        let symbols = u64::from(header.pointer_to_symbol_table());
        let size = u64::from(header.number_of_symbols()) * size_of::<H::SymbolBytes>() as u64;
        Self {
            offset: (symbols != 0).then_some(symbols + size),
        }
    }

    /// The name of a section; as the header has it, when it says where the name is and it is not.
    pub(super) fn of<'d, R: ReadRef<'d>>(
        self,
        header: &'d pe::ImageSectionHeader,
        data: R,
    ) -> Vec<u8> {
        let name = self
            .strings(data)
            .and_then(|strings| header.name(strings).ok());
        name.unwrap_or_else(|| header.raw_name()).to_vec()
    }

    fn strings<'d, R: ReadRef<'d>>(self, data: R) -> Option<StringTable<'d, R>> {
        let start = self.offset?;
        let size = data.read_at::<U32<LittleEndian>>(start).ok()?;
        let end = start.checked_add(size.get(LittleEndian).into())?;
        Some(StringTable::new(data, start, end))
    }
}
