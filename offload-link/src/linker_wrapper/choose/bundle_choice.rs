//! Chooses one entry for a target among the entries of a bundle that serve it.

use std::collections::HashSet;

use offload_formats::names::nearest;

use crate::linker_wrapper::choose::groups::{Group, Groups};
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::report::fates::Fate;

/// Removes an image from a group if the same bundle has a better one for the group.
///
/// # Errors
///
/// Fails if two entries in a group exclude each other.
pub(crate) fn settle(
    images: &[Image],
    groups: &mut Groups,
    fates: &mut [Fate],
) -> Result<(), LinkError> {
    let mut farther = HashSet::new();
    for group in &mut groups.list {
        let found = of_group(images, group)?;
        group.members.retain(|index| !found.contains(index));
        farther.extend(found);
    }
    if farther.is_empty() {
        return Ok(());
    }
    let linked: HashSet<&usize> = groups
        .list
        .iter()
        .flat_map(|group| &group.members)
        .collect();
    for index in farther.into_iter().filter(|index| !linked.contains(index)) {
        if let Some(fate) = fates.get_mut(index) {
            *fate = Fate::NotLinked { reason: NEARER };
        }
    }
    Ok(())
}

const NEARER: &str = "its bundle has an image for the target itself";

/// Returns the images of a group for which its bundle has a better one.
fn of_group(images: &[Image], group: &Group) -> Result<HashSet<usize>, LinkError> {
    let members = group.members.iter();
    let members = members.filter_map(|index| Some((*index, images.get(*index)?)));
    let bundled: Vec<(usize, &Image)> = members.filter(|(_, image)| image.bundled).collect();
    let rows = bundled
        .iter()
        .map(|(_, image)| ((image.unit, image.bundle), image.target()));
    let linked = nearest(&group.image_target(), rows).map_err(|(one, two)| {
        let [one, two] = [one, two].map(|index| bundled[index].1);
        let (first, second) = (&one.processor, &two.processor);
        let problem = format!(
            "its entries for `{first}` and `{second}` exclude each other, and the link for {} takes both",
            group.target()
        );
        LinkError::input(&one.from, problem)
    })?;
    let farther = bundled.iter().zip(linked).filter(|(_, linked)| !linked);
    Ok(farther.map(|((index, _), _)| *index).collect())
}
