//! Reads an input: its bundles, and where their images are.

use std::ops::Range;
use std::path::{Path, PathBuf};

use offload_formats::container::archive::{ArchiveError, ArchiveMember, ArchiveMembers};
use offload_formats::container::bundles::{FoundBundlesProblem, find};
use offload_formats::container::object_bundle::{
    ObjectError, bundle_sections, host_part, whole_bundle_sections,
};
use offload_formats::escape::terminal;
use offload_formats::format::bundle::Bundle;
use offload_formats::format::bundle_text::{self, Comment};
use offload_formats::format::bundles::{self, AnyBundle};
use offload_formats::format::compressed_bundle::{self, CompressedBundle};
use offload_formats::format::magic::Magic;
use offload_formats::format::pieces::{self, Piece};
use offload_formats::names::{EntryId, TargetId};

use super::file_type::FileType;
use super::request::{From, Manner, Members};
use crate::decompressed;
use crate::llvm_tool::{LlvmToolError, Sources, compression};
use crate::say::Warn;

/// Content of an input.
#[derive(Debug)]
pub(crate) struct Contents {
    pub name: PathBuf,
    /// Bundles in file order.
    pub bundles: Vec<FoundBundle>,
    /// The whole input, decompressed if it is one compressed bundle.
    pub whole: Vec<Piece>,
    /// Number of bytes after the bundles that do not form a bundle.
    pub left: u64,
    /// The type, given or detected.
    pub(super) file_type: FileType,
}

/// A bundle of the input.
#[derive(Debug)]
pub(crate) struct FoundBundle {
    /// Index of the bundle in the input.
    pub index: usize,
    /// The archive member that contains it.
    pub member: Option<String>,
    /// The section that contains it.
    pub section: Option<String>,
    pub form: BundleForm,
    /// Range in the file: the input, or the member of a thin archive.
    pub range: Range<u64>,
    pub compressed: Option<CompressedBundle>,
    pub entries: Vec<Entry>,
}

/// Layout of a bundle's images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BundleForm {
    Binary,
    Text,
    /// Each image in a section of an object.
    Object,
}

/// An image of the input.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Entry ID as written.
    pub id: String,
    /// Range in the file, or in the uncompressed bundle.
    pub range: Range<u64>,
    /// The source and the range of the object with the image's symbols: the image, or the host object.
    pub object: (usize, Range<u64>),
    /// Set for the host object without the bundle, which LLVM makes with `llvm-objcopy`.
    pub stripped: bool,
}

impl Contents {
    /// Warns of bytes after the bundles that do not form a bundle: they may be a damaged one.
    pub(super) fn warn_of_rest(&self, warn: Warn<'_>) {
        if self.left > 0 {
            let name = terminal(self.name.as_path());
            let rest = self.rest();
            warn(format!("{name}: {rest}"));
        }
    }

    /// Returns the text about bytes after the bundles.
    pub(super) fn rest(&self) -> String {
        format!("{} bytes after the bundles are not a bundle", self.left)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.bundles.iter().flat_map(|bundle| &bundle.entries)
    }
}

impl Entry {
    /// Returns an image that is a range of a source.
    fn copy(id: String, source: usize, range: Range<u64>) -> Self {
        Self {
            id,
            object: (source, range.clone()),
            range,
            stripped: false,
        }
    }

    /// Returns the bytes to unbundle. For the host of an object bundle that is the object without the bundle, whose
    /// headers take memory, so it is made only on request.
    pub(super) fn pieces(
        &self,
        sources: &Sources,
        member: Option<&str>,
    ) -> Result<Vec<Piece>, LlvmToolError> {
        let (source, range) = &self.object;
        if !self.stripped {
            return Ok(vec![Piece::Copy {
                input: *source,
                range: range.clone(),
            }]);
        }
        let pieces = host_part(&sources.file(*source).apart(), range.clone());
        let pieces = pieces.map_err(|problem| wrong(sources.name(*source), member, &problem))?;
        Ok(pieces::renumbered(pieces, |_| *source))
    }

    /// Returns the entry ID; `None` if its kind is unknown.
    pub(crate) fn parsed(&self) -> Option<EntryId> {
        // In a text bundle with the line ends of Windows, a carriage return is the last character.
        let id = self.id.strip_suffix('\r').unwrap_or(&self.id);
        EntryId::parse(id).ok()
    }

    /// Tells whether it has the form of an entry ID; its kind may be unknown.
    pub(super) fn is_shaped(&self) -> bool {
        self.parsed().is_some() || self.id.matches('-').count() >= 4
    }

    /// Tells whether one of the filters selects the image. Without filters, it is selected.
    fn passes(&self, filters: &[String]) -> bool {
        if filters.is_empty() {
            return true;
        }
        let id = self.parsed();
        let target_id = id.as_ref().map_or("", |id| id.target_id());
        filters.iter().any(|filter| is_for(target_id, filter))
    }
}

/// Tells whether the processors are the same and the image has each feature of the filter.
fn is_for(target_id: &str, filter: &str) -> bool {
    match (TargetId::parse(target_id), TargetId::parse(filter)) {
        (Ok(id), Ok(filter)) => {
            let fits = |(name, on)| id.feature(name).is_none_or(|is| is == on);
            id.processor() == filter.processor() && filter.features().all(fits)
        }
        _ => target_id == filter,
    }
}

/// Opens the input and finds its images without reading them.
pub(super) fn read(
    from: &From,
    sources: &mut Sources,
    manner: &Manner,
) -> Result<Contents, LlvmToolError> {
    let source = sources.open(&from.path)?;
    let file_type = match manner.file_type()? {
        Some(given) => given,
        None => FileType::of(sources.file(source)),
    };
    let mut reader = Reader {
        sources,
        manner,
        bundles: Vec::new(),
        uncompressed: None,
        ids_left: 256 << 20,
    };
    let range = reader.sources.file(source).whole();
    let left = match file_type {
        FileType::Archive => reader.archive(source)?,
        file_type => reader.part(source, range, None, file_type)?,
    };
    let Reader {
        mut bundles,
        uncompressed,
        ..
    } = reader;
    let whole = uncompressed.unwrap_or(source);
    for (index, bundle) in bundles.iter_mut().enumerate() {
        bundle.index = index;
    }
    if let Some(wanted) = from.bundle {
        let count = bundles.len();
        if wanted >= count {
            return Err(LlvmToolError::input(
                &from.path,
                format_args!(
                    "the input has no bundle {wanted}; it has {count} bundles, counted from 0"
                ),
            ));
        }
        bundles = bundles.into_iter().skip(wanted).take(1).collect();
    }
    for bundle in &mut bundles {
        bundle.entries.retain(|entry| entry.passes(&from.filter));
    }
    Ok(Contents {
        name: from.path.clone(),
        bundles,
        whole: vec![sources.all(whole)],
        left,
        file_type,
    })
}

struct Reader<'a> {
    sources: &'a mut Sources,
    manner: &'a Manner,
    bundles: Vec<FoundBundle>,
    /// Source of the decompressed input if it is one compressed bundle.
    uncompressed: Option<usize>,
    /// Bytes of memory left for entry IDs of compressed bundles.
    ids_left: u64,
}

impl Reader<'_> {
    /// Reads every member of an archive. Each is examined when its header is read: its section headers are often in the
    /// same block as the next member's header.
    fn archive(&mut self, source: usize) -> Result<u64, LlvmToolError> {
        let file = self.sources.file(source);
        let (data, whole) = (file.apart(), file.whole());
        let mut members = ArchiveMembers::new(&data, whole);
        while let Some(member) = members.next() {
            let member = member.map_err(|problem| self.not_archive(source, &problem))?;
            if let Err(problem) = self.member(source, &member) {
                // A wrong size in a header makes the member look damaged, too. The archive's error tells more.
                let damaged = members.find_map(Result::err);
                return Err(damaged.map_or(problem, |damage| self.not_archive(source, &damage)));
            }
        }
        Ok(0)
    }

    /// Reads a member of the archive `source`: in the archive, or a file that a thin one names.
    fn member(&mut self, source: usize, member: &ArchiveMember<'_>) -> Result<(), LlvmToolError> {
        let (source, range) = match &member.content {
            Some(range) => (source, range.clone()),
            None => {
                let archive = self.sources.name(source).to_owned();
                let number = self
                    .sources
                    .open_member(&archive, member.name, member.size)?;
                (number, self.sources.file(number).whole())
            }
        };
        let name = lossy(member.name);
        self.part(source, range, Some(&name), FileType::Object)?;
        Ok(())
    }

    /// Returns the error for an archive that cannot be read.
    fn not_archive(&self, source: usize, problem: &ArchiveError) -> LlvmToolError {
        let wrong = self.wrong(source, None, problem);
        match (problem, self.manner.members) {
            // LLVM reports this for any file that is not an archive.
            (ArchiveError::Magic { .. }, Members::AsLlvm) => {
                LlvmToolError::new("file too small to be an archive")
                    .with_hint(Some(wrong.to_string()))
            }
            (ArchiveError::Magic { .. }, Members::All) => wrong.with_hint(Some(
                "`cargo offload inspect` lists the images of programs and objects, too".to_owned(),
            )),
            _ => wrong,
        }
    }

    /// Reads a file or an archive member, and returns the number of bytes after its bundles.
    fn part(
        &mut self,
        source: usize,
        range: Range<u64>,
        member: Option<&str>,
        file_type: FileType,
    ) -> Result<u64, LlvmToolError> {
        let data = self.sources.file(source).apart();
        let magic = Magic::at(&data, range.clone());
        let place = BundlePlace {
            member: member.map(str::to_owned),
            section: None,
            range: range.clone(),
            compressed: None,
        };
        if magic != Magic::CompressedBundle {
            compression::say_uncompressed(self.manner.verbose, range.end - range.start);
            match file_type {
                FileType::Text(comment) => {
                    self.text(source, comment, place)?;
                    return Ok(0);
                }
                FileType::Object if self.object(source, place.clone())? => return Ok(0),
                _ => {}
            }
        }
        if let (Some(_), Members::All) = (member, self.manner.members) {
            if let Some(comment) = Comment::at(&data, range.clone()) {
                self.text(source, comment, place)?;
                return Ok(0);
            }
        }
        // Archive members are objects for a device link, so their sections are not searched.
        let bundled = matches!(magic, Magic::Bundle | Magic::CompressedBundle);
        if member.is_some() && !bundled {
            return Ok(0);
        }
        let found = find(&data, range);
        let found = found.map_err(|problem| match &problem.problem {
            FoundBundlesProblem::Bundles(bundles::BundleSequenceError {
                problem: bundles::BundleSequenceProblem::Compressed(_),
                ..
            }) => self.failed(source, member, &problem),
            _ => self.wrong(source, member, &problem),
        })?;
        let only = bundled && member.is_none() && found.bundles.len() == 1;
        for bundle in found.bundles {
            let place = BundlePlace {
                range: bundle.bundle.range(),
                section: bundle.section.as_deref().map(lossy),
                ..place.clone()
            };
            let inner = self.bundle(source, bundle.bundle, place, file_type)?;
            self.uncompressed = inner.filter(|_| only);
        }
        let left = found
            .trailing
            .iter()
            .map(|rest| rest.range.end - rest.range.start);
        Ok(left.sum())
    }

    /// Adds a bundle, and returns the source of its content if it is compressed.
    fn bundle(
        &mut self,
        source: usize,
        bundle: AnyBundle,
        mut place: BundlePlace,
        file_type: FileType,
    ) -> Result<Option<usize>, LlvmToolError> {
        let member = place.member.clone();
        let member = member.as_deref();
        let compressed = match bundle {
            AnyBundle::Plain(bundle) => {
                self.binary(source, bundle, place);
                return Ok(None);
            }
            AnyBundle::Compressed(compressed) => compressed,
        };
        place.compressed = Some(compressed.clone());
        let limit = self.manner.limit;
        let claimed = compressed.uncompressed_size;
        if claimed > limit {
            let problem = compressed_bundle::CompressedBundleError::Limit { claimed, limit };
            return Err(self.undecodable(source, member, &problem));
        }
        let inner = self.sources.compressed(source, compressed.clone());
        if !matches!(file_type, FileType::Text(_)) && !self.manner.verbose {
            let contents = compressed.contents(&self.sources.file(source).apart());
            let contents =
                contents.map_err(|problem| self.undecodable(source, member, &problem))?;
            if let Some(bundle) = contents {
                // Entry IDs compress well, and all of them stay in memory.
                let ids = bundle
                    .entries
                    .iter()
                    .map(|entry| entry.id.len() as u64 + 256);
                let size = ids.sum();
                self.ids_left = self.ids_left.checked_sub(size).ok_or_else(|| {
                    self.wrong(source, member, &"the entry IDs take more than 256 MiB")
                })?;
                self.binary(inner, bundle, place);
                return Ok(Some(inner));
            }
        }
        compression::materialize(self.sources, inner, limit, self.manner.verbose)
            .map_err(|problem| self.undecodable(source, member, &problem))?;
        let data = self.sources.file(inner).apart();
        let whole = self.sources.file(inner).whole();
        match (file_type, Magic::at(&data, whole.clone())) {
            (FileType::Text(comment), _) => self.text(inner, comment, place)?,
            (_, Magic::Bundle) => {
                let bundle = Bundle::parse(&data, 0, whole.end);
                let bundle = bundle.map_err(|problem| self.wrong(source, member, &problem))?;
                self.binary(inner, bundle, place);
            }
            (FileType::Object | FileType::Archive, magic) => {
                let comment = Comment::at(&data, whole)
                    .filter(|_| magic == Magic::TextBundle && self.manner.members == Members::All);
                match comment {
                    Some(comment) => self.text(inner, comment, place)?,
                    None => {
                        self.object(inner, place)?;
                    }
                }
            }
            // LLVM ignores compressed data that is not a bundle.
            _ => {}
        }
        Ok(Some(inner))
    }

    fn binary(&mut self, source: usize, bundle: Bundle, place: BundlePlace) {
        let entries = bundle.entries.into_iter();
        let entries = entries.map(|entry| Entry::copy(entry.id, source, entry.image));
        self.bundles
            .push(place.found(BundleForm::Binary, entries.collect()));
    }

    fn text(
        &mut self,
        source: usize,
        comment: Comment,
        place: BundlePlace,
    ) -> Result<(), LlvmToolError> {
        let file = self.sources.file(source);
        let range = match place.compressed {
            Some(_) => file.whole(),
            None => place.range.clone(),
        };
        let stream = file.stream(range.clone());
        let entries = bundle_text::parse_from(stream, range.start, comment)
            .map_err(|problem| self.wrong(source, place.member.as_deref(), &problem))?;
        let entries: Vec<Entry> = entries
            .into_iter()
            .map(|entry| Entry::copy(entry.id, source, entry.text))
            .collect();
        if !entries.is_empty() {
            self.bundles.push(place.found(BundleForm::Text, entries));
        }
        Ok(())
    }

    /// Reads a bundle in the sections of an object, and tells whether there is one.
    fn object(&mut self, source: usize, place: BundlePlace) -> Result<bool, LlvmToolError> {
        let file = self.sources.file(source);
        let range = match place.compressed {
            Some(_) => file.whole(),
            None => place.range.clone(),
        };
        let wrong = |problem| self.wrong(source, place.member.as_deref(), &problem);
        let data = file.apart();
        let sections = match self.manner.members {
            Members::AsLlvm => bundle_sections(&data, range.clone()),
            Members::All => whole_bundle_sections(&data, range.clone()),
        };
        let sections = match sections {
            // Formats without a reader never carry a bundle.
            Err(ObjectError::Unknown | ObjectError::Unsupported { .. }) => return Ok(false),
            sections => sections.map_err(wrong)?,
        };
        if sections.is_empty() {
            return Ok(false);
        }
        let mut entries = Vec::new();
        for section in sections {
            let mut entry = Entry::copy(section.id, source, section.content);
            if section.host {
                entry.object = (source, range.clone());
                entry.stripped = true;
            }
            entries.push(entry);
        }
        self.bundles.push(place.found(BundleForm::Object, entries));
        Ok(true)
    }

    fn wrong(
        &self,
        source: usize,
        member: Option<&str>,
        problem: &dyn std::fmt::Display,
    ) -> LlvmToolError {
        wrong(self.sources.name(source), member, problem)
    }

    /// Returns LLVM's error for a compressed bundle that cannot be read, with the problem.
    fn failed(
        &self,
        source: usize,
        member: Option<&str>,
        problem: &dyn std::fmt::Display,
    ) -> LlvmToolError {
        let what = member.map_or("input", |_| "code object");
        LlvmToolError::new(format!(
            "Failed to decompress {what}: {}",
            self.wrong(source, member, problem)
        ))
    }

    /// Returns this error with a hint.
    fn undecodable(
        &self,
        source: usize,
        member: Option<&str>,
        problem: &compressed_bundle::CompressedBundleError,
    ) -> LlvmToolError {
        let error = self.failed(source, member, problem);
        error.with_hint(decompressed::hint_for(problem.remedy()))
    }
}

fn wrong(name: &Path, member: Option<&str>, problem: &dyn std::fmt::Display) -> LlvmToolError {
    match member {
        Some(member) => LlvmToolError::input(
            name,
            format_args!("member `{}`: {problem}", terminal(member)),
        ),
        None => LlvmToolError::input(name, problem),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Place of a bundle.
#[derive(Clone)]
struct BundlePlace {
    member: Option<String>,
    section: Option<String>,
    range: Range<u64>,
    compressed: Option<CompressedBundle>,
}

impl BundlePlace {
    fn found(self, form: BundleForm, entries: Vec<Entry>) -> FoundBundle {
        FoundBundle {
            index: 0,
            member: self.member,
            section: self.section,
            form,
            range: self.range,
            compressed: self.compressed,
            entries,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_by_processor_and_by_features_that_exclude_each_other() {
        for (target_id, filter, expected) in [
            ("gfx90a:xnack+", "gfx90a", true),
            ("gfx90a", "gfx90a:xnack+", true),
            ("gfx90a:xnack-", "gfx90a:xnack+", false),
            ("gfx90a", "gfx908", false),
            ("", "gfx90a", false),
            ("gfx90a:bogus+", "gfx90a:bogus+", true),
        ] {
            assert_eq!(is_for(target_id, filter), expected, "{target_id} {filter}");
        }
    }
}
