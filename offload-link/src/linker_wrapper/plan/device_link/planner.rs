//! Plans one device link: its files, its clang, its commands.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use offload_build::tools::{
    Command, DeviceInput, DeviceLinker, DeviceTools, LinkJob, LinkOptions, Llvm, NotFound,
    PlannedLink, Search, SourceText, Way,
};
use offload_formats::escape::terminal;
use offload_formats::format::bitcode;
use offload_formats::names::{LlvmRelease, OffloadKind, TargetId, TargetIdError, Triple};

use super::content::{InputContent, RuntimeUse};
use super::job::{DeviceLink, Missing};
use super::values::{for_target, libraries_of, split};
use crate::linker_wrapper::choose::groups::Group;
use crate::linker_wrapper::choose::select::Images;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::line::arguments::Arguments;
use crate::linker_wrapper::workplace::Workplace;

/// A text image, which device linkers do not read.
struct Text<'a> {
    image: &'a Image,
    language: SourceText,
    path: PathBuf,
    /// Processor of the image, if it has one.
    processor: &'a str,
}

/// Commands that compile the texts, and the link.
type Planned<'a> = (Vec<(&'a Image, Command)>, PlannedLink);

/// The images of a group as inputs of a link.
#[derive(Default)]
struct LinkMembers<'a> {
    /// Newest release of LLVM that wrote bitcode in the group.
    made_by: Option<u32>,
    runtime: RuntimeUse,
    /// Files that images are written to.
    files: Vec<(PathBuf, &'a Image)>,
    inputs: Vec<DeviceInput>,
    texts: Vec<Text<'a>>,
}

/// Settings that all plans of one host link share.
pub(crate) struct Planner<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) way: Way,
    pub(crate) cuda: Option<&'a Path>,
    pub(crate) search: &'a Search,
    pub(crate) beside: Option<Llvm>,
    pub(crate) host_release: Option<u32>,
    pub(crate) libraries: Vec<OsString>,
    pub(crate) executable: PathBuf,
    pub(crate) workplace: &'a Workplace,
}

impl Planner<'_> {
    pub(crate) fn plan<'a>(
        &self,
        images: &'a Images,
        group: &'a Group,
        names: &mut BTreeSet<String>,
    ) -> Result<Result<DeviceLink<'a>, Missing<'a>>, LinkError> {
        let options = &self.arguments.options;
        let triple = checked_triple(images, group)?;
        let LinkMembers {
            made_by,
            runtime,
            files,
            mut inputs,
            texts,
        } = self.members(images, group, names)?;
        let mut copies = Vec::new();
        for (index, library) in libraries_of(&options.bitcode_libraries, group).enumerate() {
            // With another extension, clang would compile it instead of passing it to the linker.
            let path = self
                .workplace
                .file(&format!("{}.library-{index}.o", group.label(self.way)));
            copies.push(Command::new("cp").arg(library).arg(&path));
            inputs.push(DeviceInput::Bitcode(path));
        }
        let job = LinkJob {
            triple,
            processor: group.processor().to_owned(),
            kinds: group.kinds.clone(),
            uses_openmp_runtime: runtime.is_missing(),
            inputs,
        };
        let label = group.label(self.way);
        let numbered = (1..).map(|count| format!("{label}.{count}.img"));
        let name = std::iter::once(format!("{label}.img"))
            .chain(numbered)
            .find(|name| names.insert(name.clone()))
            .expect("the numbers do not end");
        let output = self.workplace.file(&name);
        let wraps_spirv = job.triple.arch() == "spirv64"
            && job.triple.vendor() == "intel"
            && job.kinds.contains(&OffloadKind::OPENMP);
        let planned = self
            .clang(made_by)
            .and_then(|llvm| self.complete(&job, &texts, &output, group, (llvm, made_by)));
        Ok(match planned {
            Ok((translations, planned)) => Ok(DeviceLink {
                group,
                inputs: files,
                translations,
                commands: copies.into_iter().chain(planned.commands).collect(),
                output: planned.output,
                kind: planned.kind,
                shows_output: options.verbose || self.way == Way::Llvm,
                wraps_spirv,
            }),
            Err(missing) => Err(Missing {
                group,
                reason: missing.to_string(),
            }),
        })
    }

    /// Completes the plan with `llvm`, or with the newest installation that has all required parts.
    fn complete<'a>(
        &self,
        job: &LinkJob,
        texts: &[Text<'a>],
        output: &Path,
        group: &Group,
        (llvm, made_by): (Option<Llvm>, Option<u32>),
    ) -> Result<Planned<'a>, NotFound> {
        let missing = match self.linker(job, texts, output, group, llvm.as_ref()) {
            Err(missing) if self.way == Way::Own => missing,
            planned => return planned,
        };
        let others = self.search.clangs_from(made_by.unwrap_or_default());
        let mut planned = others
            .iter()
            .filter(|other| Some(*other) != llvm.as_ref())
            .filter_map(|other| self.linker(job, texts, output, group, Some(other)).ok());
        planned.next().ok_or(missing)
    }

    fn linker<'a>(
        &self,
        job: &LinkJob,
        texts: &[Text<'a>],
        output: &Path,
        group: &Group,
        llvm: Option<&Llvm>,
    ) -> Result<Planned<'a>, NotFound> {
        let options = &self.arguments.options;
        let release = options
            .llvm
            .unwrap_or_else(|| match llvm.and_then(Llvm::release) {
                Some(..=19) => LlvmRelease::V19,
                Some(23..) => LlvmRelease::Main,
                _ => LlvmRelease::V22,
            });
        let linker_args = for_target(&options.device_linker, &group.triple, release);
        let compiler_args = for_target(&options.device_compiler, &group.triple, release);
        let plugin_options = [&options.mllvm[..], &options.offload_opt].concat();
        let builtin_bitcode: Vec<PathBuf> = options
            .builtin_bitcode
            .iter()
            .filter_map(|value| split(value, '='))
            .filter(|(triple, _)| *triple == *group.triple)
            .map(|(_, file)| file.into())
            .collect();
        let by_name = |linker: &PathBuf| linker.to_string_lossy().ends_with("lld");
        let mut target = job.target();
        target.merges_bitcode |= options.embed_bitcode || !builtin_bitcode.is_empty();
        let linker = DeviceLinker {
            tools: &DeviceTools::find(llvm, self.search, &target, None),
            cc: Path::new("cc"),
            way: self.way,
            opt_level: "2",
            host_libraries: &self.libraries,
            compiler_args: &compiler_args,
            linker_args: &linker_args,
            options: LinkOptions {
                has_device_libraries: false,
                plugin_options: &plugin_options,
                // Our rules pass each option once.
                mllvm: match self.way {
                    Way::Llvm => &options.mllvm,
                    Way::Own => &[],
                },
                save_temps: options.save_temps,
                embed_bitcode: options.embed_bitcode,
                no_lto: options.no_lto,
                verbose: options.verbose,
                builtin_bitcode: &builtin_bitcode,
                cuda: self.cuda,
                executable: match self.way == Way::Llvm || options.save_temps {
                    true => self.executable.as_os_str(),
                    false => OsStr::new(""),
                },
                host_is_lld: options.linker.as_ref().is_some_and(by_name),
                dry_run: options.dry_run,
            },
        };
        let translations = texts.iter().map(|text| {
            let command = linker.translate(text.language, &text.path, &job.triple, text.processor);
            command.map(|command| (text.image, command))
        });
        let translations = translations.collect::<Result<_, _>>()?;
        Ok((translations, linker.plan(job, output)?))
    }

    /// Returns the inputs of the link and the files that they are written to.
    fn members<'a>(
        &self,
        images: &'a Images,
        group: &'a Group,
        names: &mut BTreeSet<String>,
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
            let path = self
                .workplace
                .file(&file_name(image, group, content.extension(), names));
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

    /// Returns a clang of the release `made_by`, which wrote bitcode, or of a newer one. Without bitcode, any release
    /// works, for example the host compiler's.
    fn clang(&self, made_by: Option<u32>) -> Result<Option<Llvm>, NotFound> {
        let reads = |llvm: &Llvm| match (llvm.release(), made_by) {
            (Some(release), Some(made_by)) => release >= made_by,
            _ => true,
        };
        let beside = self.beside.clone().filter(reads);
        let same = || self.search.clang_of(made_by.or(self.host_release)?);
        let plain = || {
            let plain = self.search.program(&["clang"]).map(Llvm::of);
            plain.filter(|llvm| self.way == Way::Llvm && reads(llvm))
        };
        // LLVM's tool uses the clang beside it.
        let chosen = match self.way {
            Way::Llvm => beside.or_else(same),
            Way::Own => same().or(beside),
        };
        if let Some(llvm) = chosen.or_else(plain) {
            return Ok(Some(llvm));
        }
        match self.search.clang_from(made_by.unwrap_or_default()) {
            Ok(llvm) => Ok(Some(llvm)),
            Err(older) => too_old(&older, made_by),
        }
    }
}

/// Returns no clang if there is no bitcode: objects for a CPU do not need one.
fn too_old(older: &[Llvm], made_by: Option<u32>) -> Result<Option<Llvm>, NotFound> {
    let (Some(made_by), false) = (made_by, older.is_empty()) else {
        return Ok(None);
    };
    Err(NotFound::newer_clang(made_by, older))
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
    let numbered = (1..).map(|count| format!("{base}-{count}.{extension}"));
    let mut names = std::iter::once(format!("{base}.{extension}")).chain(numbered);
    names
        .find(|name| taken.insert(name.clone()))
        .expect("the numbers do not end")
}

/// Returns the group's triple, if both it and the processor are valid in options of a device linker.
fn checked_triple(images: &Images, group: &Group) -> Result<Triple, LinkError> {
    let first = group.members.first();
    let wrong = |source: String| LinkError::Input {
        from: first.map_or(String::new(), |index| images.images[*index].from.clone()),
        source: source.into(),
    };
    let triple = Triple::parse(&group.triple)
        .map_err(|error| wrong(format!("triple `{}`: {error}", terminal(&group.triple))))?;
    // Options and entry IDs cannot contain these characters.
    if let Err(error @ TargetIdError::Character { .. }) = TargetId::parse(group.processor()) {
        return Err(wrong(format!("processor {:?}: {error}", group.processor)));
    }
    Ok(triple)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_which_release_reads_the_bitcode() {
        let old = Llvm::of("/usr/lib/llvm-19/bin/clang-19".into());
        assert_eq!(
            too_old(&[old], Some(22)).unwrap_err().to_string(),
            "`clang-22` not found (searched: /usr/lib/llvm-19/bin/clang-19 is of LLVM 19) [OFF605]\n\
             hint: the device code was compiled by LLVM 22, which older releases do not read: install clang (Debian, \
             Ubuntu: `apt install clang-22 lld-22 llvm-22`; Fedora: `dnf install clang lld llvm`; Arch: `pacman -S clang \
             lld llvm`; conda-forge: `conda install clangxx lld llvm-tools`), of that release or a newer one"
        );
        assert_eq!(too_old(&[], Some(22)), Ok(None));
    }
}
