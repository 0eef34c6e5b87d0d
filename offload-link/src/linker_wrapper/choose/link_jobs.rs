//! Makes a link job of each group: reads its images, and names the files of the device link.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use offload_build::tools::{DeviceInput, LinkJob, SourceText, Way};
use offload_formats::escape::terminal;
use offload_formats::format::bitcode;
use offload_formats::names::{TargetId, TargetIdError, Triple};

use crate::linker_wrapper::choose::content::{InputContent, RuntimeUse};
use crate::linker_wrapper::choose::groups::Group;
use crate::linker_wrapper::choose::select::Images;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::line::arguments::Arguments;
use crate::linker_wrapper::line::values::bitcode_libraries;
use crate::linker_wrapper::workplace::Workplace;

/// The link job of a group, and its files.
#[derive(Debug)]
pub(crate) struct GroupJob<'a> {
    pub group: &'a Group,
    pub job: LinkJob,
    /// Newest release of LLVM that wrote bitcode in the group.
    pub made_by: Option<u32>,
    /// Files that are written from images of the inputs before the link.
    pub files: Vec<(PathBuf, &'a Image)>,
    pub texts: Vec<Text<'a>>,
    /// Bitcode libraries of the command line, each with the file that it is copied to.
    pub libraries: Vec<(PathBuf, PathBuf)>,
    /// File of the linked image.
    pub output: PathBuf,
}

/// A text image, which device linkers do not read.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub image: &'a Image,
    pub language: SourceText,
    pub path: PathBuf,
    /// Processor of the image, if it has one.
    pub processor: &'a str,
}

/// The images of a group as inputs of a link.
#[derive(Default)]
struct LinkMembers<'a> {
    made_by: Option<u32>,
    runtime: RuntimeUse,
    files: Vec<(PathBuf, &'a Image)>,
    inputs: Vec<DeviceInput>,
    texts: Vec<Text<'a>>,
}

/// Returns the link job of each group.
///
/// # Errors
///
/// Fails if an image cannot be read, or if its triple or processor is invalid.
pub(crate) fn link_jobs<'a>(
    images: &'a Images,
    arguments: &Arguments,
    way: Way,
    workplace: &Workplace,
) -> Result<Vec<GroupJob<'a>>, LinkError> {
    let mut jobs = LinkJobs {
        arguments,
        way,
        workplace,
        names: BTreeSet::new(),
    };
    let groups = images.groups.iter();
    groups.map(|group| jobs.of(images, group)).collect()
}

/// Link jobs of one host link, whose files have different names.
struct LinkJobs<'a> {
    arguments: &'a Arguments,
    way: Way,
    workplace: &'a Workplace,
    names: BTreeSet<String>,
}

impl LinkJobs<'_> {
    fn of<'a>(&mut self, images: &'a Images, group: &'a Group) -> Result<GroupJob<'a>, LinkError> {
        let triple = checked_triple(images, group)?;
        let LinkMembers {
            made_by,
            runtime,
            files,
            mut inputs,
            texts,
        } = self.members(images, group)?;
        let label = group.label(self.way);
        let target = (group.triple.as_str(), group.processor.as_str());
        let values = &self.arguments.options.bitcode_libraries;
        let libraries = bitcode_libraries(values, target, &group.kinds).enumerate();
        let libraries = libraries.map(|(index, library)| {
            // With another extension, clang would compile it instead of passing it to the linker.
            let name = distinct(
                &format!("{label}.library-{index}"),
                '-',
                "o",
                &mut self.names,
            );
            (library, self.workplace.file(&name))
        });
        let libraries: Vec<(PathBuf, PathBuf)> = libraries.collect();
        let copies = libraries.iter().map(|(_, copy)| copy.clone());
        inputs.extend(copies.map(DeviceInput::Bitcode));
        let name = distinct(&label, '.', "img", &mut self.names);
        Ok(GroupJob {
            group,
            job: LinkJob {
                triple,
                processor: group.processor().to_owned(),
                kinds: group.kinds.clone(),
                uses_openmp_runtime: runtime.is_missing(),
                inputs,
            },
            made_by,
            files,
            texts,
            libraries,
            output: self.workplace.file(&name),
        })
    }

    /// Reads the images of a group, and names the files that they are written to.
    fn members<'a>(
        &mut self,
        images: &'a Images,
        group: &'a Group,
    ) -> Result<LinkMembers<'a>, LinkError> {
        let mut members = LinkMembers::default();
        for index in &group.members {
            let image = &images.images[*index];
            let (content, release) = image.read(|data| {
                let content = InputContent::of(data, self.way);
                if content != InputContent::Bitcode {
                    return (content, None);
                }
                members.runtime.add(data, 0..image.size());
                let release = bitcode::release(data, 0..image.size());
                (content, release.ok().flatten())
            })?;
            members.made_by = members.made_by.max(release);
            let path = self.workplace.file(&file_name(
                image,
                group,
                content.extension(),
                &mut self.names,
            ));
            if let InputContent::Source(language) = content {
                if language == SourceText::Ir {
                    members.runtime.add_text(&image.bytes()?);
                }
                let processor = match image.processor.as_str() {
                    "" | "generic" => group.processor(),
                    own => own,
                };
                members.texts.push(Text {
                    image,
                    language,
                    path: path.clone(),
                    processor,
                });
            }
            members.inputs.push(content.input(path.clone()));
            members.files.push((path, image));
        }
        Ok(members)
    }
}

impl Group {
    /// Returns the name of the image's file without its extension; for LLVM, architecture and processor.
    fn label(&self, way: Way) -> String {
        let arch = self.triple.split_once('-');
        let arch = arch.map_or(self.triple.as_str(), |(arch, _)| arch);
        match (way, self.processor.as_str()) {
            (Way::Llvm, processor) => format!("{arch}.{processor}"),
            (Way::Own, "") => self.triple.clone(),
            (Way::Own, processor) => format!("{}.{processor}", self.triple),
        }
    }
}

/// Returns `<stem of the host file>-<triple>-<processor>.o`, with a number if that name is used.
fn file_name(
    image: &Image,
    group: &Group,
    extension: &str,
    taken: &mut BTreeSet<String>,
) -> String {
    let name = image.from.trim_end_matches(')');
    let name = name.rsplit(['/', '(']).next().unwrap_or(name);
    let stem = Path::new(name).file_stem().unwrap_or_default();
    let label = format!("{}-{}", group.triple, group.processor);
    let base = format!("{}-{label}", stem.to_string_lossy());
    distinct(&base, '-', extension, taken)
}

/// Returns `<base>.<extension>`, or, if that name is used, the first unused one with a number after the base.
/// Links of one target run at the same time, so that no two may write one file.
fn distinct(
    base: &str,
    before_number: char,
    extension: &str,
    taken: &mut BTreeSet<String>,
) -> String {
    let numbered = (1..).map(|count| format!("{base}{before_number}{count}.{extension}"));
    let mut names = std::iter::once(format!("{base}.{extension}")).chain(numbered);
    names
        .find(|name| taken.insert(name.clone()))
        .expect("the numbers do not end")
}

/// Returns the group's triple, if both it and the processor are valid in options of a device linker.
fn checked_triple(images: &Images, group: &Group) -> Result<Triple, LinkError> {
    let first = group.members.first();
    let from = first.map_or("", |index| images.images[*index].from.as_str());
    let wrong = |problem: String| LinkError::input(from, problem);
    let triple = Triple::parse(&group.triple)
        .map_err(|error| wrong(format!("triple `{}`: {error}", terminal(&group.triple))))?;
    // Options and entry IDs cannot contain these characters.
    if let Err(error @ TargetIdError::Character { .. }) = TargetId::parse(group.processor()) {
        return Err(wrong(format!("processor {:?}: {error}", group.processor)));
    }
    Ok(triple)
}
