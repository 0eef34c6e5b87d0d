//! Selects the images of a bundle that are linked for a target.
//!
//! A bundle contains one source's code for several targets, so a link needs only one of its images.
//! If several images serve a target (`gfx9-generic` and `gfx906` serve `gfx906`), the target's own
//! is linked. Two images for one processor conflict if only one sets a feature
//! (`docs/spec/bundler.md` §6.6).

use std::collections::BTreeMap;

use super::{ImageTarget, TargetId};

/// Tells for each image that serves `wanted` whether it is linked. Each image comes with a value
/// that identifies its bundle.
///
/// # Errors
///
/// The indices of two ambiguous images of a bundle.
pub fn nearest<'a, Bundle: Ord>(
    wanted: &ImageTarget<'_>,
    images: impl IntoIterator<Item = (Bundle, ImageTarget<'a>)>,
) -> Result<Vec<bool>, (usize, usize)> {
    let mut bundles: BTreeMap<Bundle, Vec<(usize, ImageTarget<'a>)>> = BTreeMap::new();
    let mut count = 0;
    for (bundle, target) in images {
        bundles.entry(bundle).or_default().push((count, target));
        count += 1;
    }
    let mut linked = vec![true; count];
    for images in bundles.into_values() {
        let Some(((first, of), others)) = images.split_first() else {
            continue;
        };
        let Some((other, _)) = others.iter().find(|(_, target)| !target.is_same(of)) else {
            continue;
        };
        for (index, one) in &images {
            if let Some((other, _)) = images.iter().find(|(_, two)| excludes(one, two)) {
                return Err((*index, *other));
            }
        }
        if !images.iter().any(|(_, target)| target.is_same(wanted)) {
            return Err((*first, *other));
        }
        for (index, target) in &images {
            if let Some(linked) = linked.get_mut(*index) {
                *linked = target.is_same(wanted);
            }
        }
    }
    Ok(linked)
}

/// Tells whether both are for one processor and set different features.
fn excludes(one: &ImageTarget<'_>, two: &ImageTarget<'_>) -> bool {
    match [one, two].map(|target| TargetId::parse(target.arch)) {
        [Ok(one), Ok(two)] => one.processor() == two.processor() && one != two,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest_of(wanted: &str, images: &[(u8, &str)]) -> Result<Vec<bool>, (usize, usize)> {
        let target = |arch| ImageTarget {
            triple: "amdgcn-amd-amdhsa",
            arch,
        };
        let images = images.iter().map(|(bundle, arch)| (*bundle, target(arch)));
        nearest(&target(wanted), images)
    }

    #[test]
    fn takes_the_targets_own_image_of_each_bundle() {
        for (wanted, images, expected) in [
            ("gfx906", &[(0, "gfx906")][..], Ok(vec![true])),
            ("gfx906", &[(0, "gfx9-generic")], Ok(vec![true])),
            (
                "gfx906",
                &[(0, "gfx9-generic"), (0, "gfx906"), (1, "gfx9-generic")],
                Ok(vec![false, true, true]),
            ),
            // Twice the same is for the linker to judge, bundles apart are apart.
            (
                "gfx90a:xnack+",
                &[(0, "gfx90a"), (0, "gfx90a"), (1, "gfx90a:xnack+")],
                Ok(vec![true; 3]),
            ),
            (
                "gfx90a:xnack+",
                &[(0, "gfx90a:xnack+"), (1, "gfx906"), (0, "gfx90a")],
                Err((0, 2)),
            ),
            (
                "gfx90a:sramecc+:xnack+",
                &[(0, "gfx90a:sramecc+"), (0, "gfx90a:xnack+")],
                Err((0, 1)),
            ),
        ] {
            assert_eq!(nearest_of(wanted, images), expected, "{wanted} {images:?}");
        }
    }
}
