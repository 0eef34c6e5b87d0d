//! Which images of a bundle are linked for a target.
//!
//! A bundle has one source's code for each of several targets, so no link needs it twice. Where several of its
//! images serve a target (`gfx9-generic` and `gfx906` serve `gfx906`), the target's own is linked. Two for one processor,
//! of which one leaves open what the other says, exclude each other (`docs/spec/bundler.md` §6.6).

use std::collections::BTreeMap;

use super::{ImageTarget, TargetId};

/// Of images that serve `wanted`, each with what tells its bundle from others: whether it is linked.
///
/// # Errors
///
/// Two images of a bundle, by their places among the images, of which nobody can say which one is meant.
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

/// Whether they are for one processor and say different features.
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
