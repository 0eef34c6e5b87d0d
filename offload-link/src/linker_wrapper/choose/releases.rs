//! Links OpenMP's images apart from others of their target if another release of LLVM compiled them.
//!
//! The device link of a group takes one release, and OpenMP needs the device runtime of the release that compiled it: with
//! Debian's packages LLVM 22 compiles HIP, and LLVM 19 OpenMP. LLVM's tool links both together, and fails.

use offload_formats::format::bitcode;
use offload_formats::names::OffloadKind;

use crate::linker_wrapper::choose::groups::Group;
use crate::linker_wrapper::choose::select::Images;
use crate::linker_wrapper::error::LinkError;

impl Images {
    /// Parts each group with bitcode of OpenMP and of another kind from two releases. Images of no kind, such as libraries,
    /// belong to both parts.
    ///
    /// # Errors
    ///
    /// Fails if an image cannot be read.
    pub(crate) fn part_releases(&mut self) -> Result<(), LinkError> {
        let mut groups = Vec::new();
        for group in std::mem::take(&mut self.groups) {
            let of_openmp = self.release(&group, |kind| kind == OffloadKind::OPENMP)?;
            let of_others = self.release(&group, |kind| {
                kind != OffloadKind::OPENMP && kind != OffloadKind::NONE
            })?;
            if of_openmp.is_none() || of_others.is_none() || of_openmp == of_others {
                groups.push(group);
                continue;
            }
            let of = |is_wanted: fn(OffloadKind) -> bool| Group {
                members: self.members(&group, is_wanted).collect(),
                kinds: group
                    .kinds
                    .iter()
                    .copied()
                    .filter(|kind| is_wanted(*kind))
                    .collect(),
                ..group.clone()
            };
            groups.push(of(|kind| kind != OffloadKind::OPENMP));
            groups.push(of(|kind| {
                kind == OffloadKind::OPENMP || kind == OffloadKind::NONE
            }));
        }
        self.groups = groups;
        Ok(())
    }

    fn members<'a>(
        &'a self,
        group: &'a Group,
        is_wanted: impl Fn(OffloadKind) -> bool + 'a,
    ) -> impl Iterator<Item = usize> + 'a {
        let members = group.members.iter().copied();
        members.filter(move |index| {
            let image = self.images.get(*index);
            image.is_some_and(|image| is_wanted(image.offload_kind))
        })
    }

    /// Returns the newest release that wrote bitcode of some kinds in a group. Nothing is read if the group has only one kind.
    fn release(
        &self,
        group: &Group,
        is_wanted: impl Fn(OffloadKind) -> bool,
    ) -> Result<Option<u32>, LinkError> {
        let mut newest = None;
        if group.kinds.len() < 2 {
            return Ok(newest);
        }
        for index in self.members(group, is_wanted) {
            let image = &self.images[index];
            let release = image.read(|data| bitcode::release(data, 0..image.size()))?;
            newest = newest.max(release.ok().flatten());
        }
        Ok(newest)
    }
}
