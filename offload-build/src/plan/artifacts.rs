//! Libraries that a module comes out as, for programs that are linked elsewhere.
//!
//! | `artifact`       | file                          | members, one for each source                          |
//! |------------------|-------------------------------|-------------------------------------------------------|
//! | `hda`            | `lib<name>.a`                 | the host's object with the code for each target in it |
//! | `device-archive` | `libbc-<name>-<arch>-<id>.a`, for each target | its code for that target      |
//!
//! Their device code is not linked yet: `offload-link` does it in the link of the program.
//! Host objects with offload entries demand it: with another linker their code would run unregistered.
//! Specification: `docs/spec/linker-wrapper.md` §7.1 for the objects, §7.4 for the names.

use crate::out_dir::ARTIFACTS;
use crate::steps::artifact::{Artifact, Member};
use offload_build_core::declare::language::ArtifactKind;
use offload_build_core::declare::module::{Module, Target};
use offload_build_core::error::Error;
use offload_formats::names::{ConflictScope, EntryId, conflict, library_name};
use std::path::{Path, PathBuf};

/// Files that a module has of one source.
pub(crate) struct Unit {
    /// Name of its members, without an extension.
    pub(crate) stem: String,
    pub(crate) host: PathBuf,
    /// Images of the targets that compile it, in the order of the manifest.
    pub(crate) images: Vec<(Target, PathBuf)>,
}

/// The archives that `module` asks for, made of `units`, for a host of that triple.
pub(crate) fn plan(
    module: &Module,
    units: &[Unit],
    host: &str,
    out: &Path,
) -> Result<Vec<Artifact>, Error> {
    let wants = |kind| module.artifacts.contains(&kind);
    let folder = out.join(ARTIFACTS);
    let mut artifacts = Vec::new();
    if wants(ArtifactKind::Hda) {
        check(module)?;
        let members = units.iter().map(|unit| Member {
            name: format!("{}.o", unit.stem),
            content: unit.host.clone(),
            images: unit
                .images
                .iter()
                .map(|(target, image)| (entry_id(target), image.clone()))
                .collect(),
            host: format!("host-{host}-"),
        });
        artifacts.push(Artifact {
            library: folder.join(hda_name(module)),
            members: members.collect(),
        });
    }
    // A target for which nothing is compiled has none.
    let targets = module.targets.iter().filter(|target| {
        let has = |unit: &Unit| unit.images.iter().any(|(of, _)| of == *target);
        wants(ArtifactKind::DeviceArchive) && units.iter().any(has)
    });
    for target in targets {
        let name = archive_name(module, target);
        let members = units.iter().filter_map(|unit| {
            let (_, image) = unit.images.iter().find(|(of, _)| of == target)?;
            let extension = image.extension()?.to_string_lossy();
            Some(Member {
                name: format!("{}.{extension}", unit.stem),
                content: image.clone(),
                images: Vec::new(),
                host: String::new(),
            })
        });
        let library = folder.join(name);
        if artifacts.iter().any(|other| other.library == library) {
            return Err(Error::new(format_args!(
                "module `{}`: `{}` and another target of its processor differ in `define`, `flags`, `opt-level` or `exclude`, and \
                 would have one archive, `{}`",
                module.name,
                target.written,
                library.display()
            )));
        }
        artifacts.push(Artifact {
            library,
            members: members.collect(),
        });
    }
    Ok(artifacts)
}

fn hda_name(module: &Module) -> String {
    format!("lib{}.a", module.library)
}

fn archive_name(module: &Module, target: &Target) -> String {
    library_name::file_name(&module.library, &target.triple, &target.id.to_string())
}

/// Checks that no library of `module` would be the file of a library of one of `others`.
pub(crate) fn check_names(module: &Module, others: &[Module]) -> Result<(), Error> {
    let names = |module: &Module| {
        let of_kind = |kind: &ArtifactKind| match kind {
            ArtifactKind::Hda => vec![hda_name(module)],
            ArtifactKind::DeviceArchive => {
                let targets = module.targets.iter();
                targets.map(|target| archive_name(module, target)).collect()
            }
        };
        module.artifacts.iter().flat_map(of_kind).collect()
    };
    let own: Vec<String> = names(module);
    for other in others {
        let theirs: Vec<String> = names(other);
        if let Some(name) = theirs.iter().find(|name| own.contains(name)) {
            return Err(Error::new(format_args!(
                "modules `{}` and `{}` make a library `{name}`\n\
                 hint: the key `name` of a module names its libraries",
                other.name, module.name
            )));
        }
    }
    Ok(())
}

/// Processors have triples of three fields, and the place of the fourth stays empty (`docs/spec/bundler.md` §6).
fn entry_id(target: &Target) -> String {
    let triple = target.triple.as_str().trim_end_matches('-');
    match target.id.to_string().as_str() {
        "" => format!("openmp-{triple}-"),
        id => format!("openmp-{triple}--{id}"),
    }
}

/// The entries of one member may be together (`docs/spec/bundler.md` §5).
fn check(module: &Module) -> Result<(), Error> {
    let ids = module
        .targets
        .iter()
        .map(|target| EntryId::parse(&entry_id(target)));
    let ids: Vec<EntryId> = ids.collect::<Result<_, _>>().map_err(Error::new)?;
    let Some((one, other)) = conflict(&ids, ConflictScope::All) else {
        return Ok(());
    };
    let written = |index: usize| {
        module
            .targets
            .get(index)
            .map_or("", |target| &target.written)
    };
    Err(Error::new(format_args!(
        "module `{}`: `{}` and `{}` cannot be in one archive of bundles: they do not set the same features",
        module.name,
        written(one),
        written(other)
    )))
}
