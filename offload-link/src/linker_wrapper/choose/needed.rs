//! Finds the images that the chosen images of one target need.
//!
//! Symbols of other images are read only if the chosen ones need any. Most kernels need none.

use std::collections::HashSet;

use offload_formats::format::device_text::DeviceText;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::inputs::symbols::{Candidate, Names, Symbols, linked};

/// Returns those of `others` that define undefined symbols of `chosen`, and those that these need in turn.
///
/// | format without known symbols                              | of a chosen image        | of another image          |
/// |-----------------------------------------------------------|--------------------------|---------------------------|
/// | LLVM IR as text, assembly: unknown until it is compiled    | it needs all others      | needed if a bundle, and anything is |
/// | PTX, SPIR-V and others                                    | it needs all bundles     | the same                  |
///
/// # Errors
///
/// Fails if an image cannot be read or is damaged.
pub(super) fn needed<'a>(
    chosen: &[&'a Image],
    others: &[(usize, &'a Image)],
) -> Result<Vec<usize>, LinkError> {
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    let mut open = false;
    for image in chosen {
        let found = image.names()?;
        if found.is_none() && has_unknown_symbols(image)? {
            return Ok(others.iter().map(|(index, _)| *index).collect());
        }
        open |= found.is_none();
        names.push(found.unwrap_or_default());
    }
    if !open && !needs_others(&names) {
        return Ok(Vec::new());
    }
    let mut always = vec![true; chosen.len()];
    for (_, image) in others {
        let found = image.names()?;
        always.push(image.bundled && (open || found.is_none()));
        names.push(found.unwrap_or_default());
    }
    let symbols: Vec<Symbols<'_>> = names.iter().map(Names::symbols).collect();
    let candidates = symbols.iter().zip(always);
    let candidates: Vec<Candidate<'_>> = candidates
        .map(|(symbols, always)| Candidate {
            defined: symbols.defined.clone(),
            always,
        })
        .collect();
    let taken = linked(&candidates, [], |index, want| {
        symbols[index].undefined.iter().for_each(|name| want(name));
        Ok::<(), LinkError>(())
    })?;
    let taken = others.iter().zip(&taken[chosen.len()..]);
    Ok(taken
        .filter_map(|((index, _), taken)| taken.then_some(*index))
        .collect())
}

/// Tells whether these images together leave symbols undefined.
fn needs_others(names: &[Names]) -> bool {
    let symbols: Vec<Symbols<'_>> = names.iter().map(Names::symbols).collect();
    let defined = symbols.iter().flat_map(|symbols| &symbols.defined);
    let defined: HashSet<&[u8]> = defined.copied().collect();
    let mut undefined = symbols.iter().flat_map(|symbols| &symbols.undefined);
    undefined.any(|name| !defined.contains(name))
}

/// Tells whether it is LLVM IR or assembly, whose symbols are unknown before they are compiled.
pub(super) fn has_unknown_symbols(image: &Image) -> Result<bool, LinkError> {
    let text = image.text()?;
    Ok(matches!(text, Some(DeviceText::Ir | DeviceText::Assembly)))
}
