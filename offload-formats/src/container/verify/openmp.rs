//! Compares the kernels of OpenMP images for different targets.

use std::collections::{BTreeMap, BTreeSet};

use super::codes::FindingCode;
use super::finding::{FindingPlace, Findings};
use crate::container::inventory::InventoryImage;
use crate::escape::terminal;
use crate::names::{ImageTarget, OffloadKind};

/// Kernels of a program's OpenMP images, by target.
#[derive(Debug, Default)]
pub(super) struct OpenMpKernels {
    /// Triple and processor of images, and the kernels that they define together.
    targets: BTreeMap<(String, String), BTreeSet<String>>,
}

impl OpenMpKernels {
    /// Adds the kernels of an image, if it is one of OpenMP.
    pub(super) fn add(&mut self, image: &InventoryImage, names: &[String]) {
        if image.target.kind == OffloadKind::OPENMP {
            let target = (image.target.triple.clone(), image.target.processor.clone());
            let kernels = self.targets.entry(target).or_default();
            kernels.extend(names.iter().cloned());
        }
    }

    /// Reports each target whose images lack some of `wanted`, the kernels of the host, that others have.
    pub(super) fn report_differences(&self, wanted: &[&str], findings: &mut Findings) {
        let is_defined = |name: &&str| self.targets.values().any(|names| names.contains(*name));
        let expected: Vec<&str> = wanted.iter().copied().filter(is_defined).collect();
        for target in self.targets.keys() {
            // libomptarget loads each image that the device can run.
            let usable = self.targets.iter();
            let usable = usable.filter(|(image, _)| can_run(image, target));
            let usable: Vec<&BTreeSet<String>> = usable.map(|(_, names)| names).collect();
            let is_missing = |name: &&str| !usable.iter().any(|names| names.contains(*name));
            let missing: Vec<&str> = expected.iter().copied().filter(is_missing).collect();
            if let Some(first) = missing.first() {
                let (triple, processor) = target;
                let shown = match processor.as_str() {
                    "" => triple,
                    processor => processor,
                };
                let text = format!(
                    "no image for `{}` defines {} of {} kernels, such as `{}`",
                    terminal(shown),
                    missing.len(),
                    expected.len(),
                    terminal(*first)
                );
                findings.add(FindingCode::OtherTargets, FindingPlace::default(), &text);
            }
        }
    }
}

/// Tells whether a device that the image for `target` was made for can also run that for `image`.
fn can_run(image: &(String, String), target: &(String, String)) -> bool {
    let [of_image, of_target] = [image, target].map(|(triple, arch)| ImageTarget { triple, arch });
    // A cubin runs on later processors of its major version.
    let number = |(_, arch): &(String, String)| arch.strip_prefix("sm_")?.parse::<u32>().ok();
    let is_older = match (number(image), number(target)) {
        (Some(image), Some(target)) => image / 10 == target / 10 && image <= target,
        _ => false,
    };
    is_older || of_image.serves(&of_target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_which_images_a_device_can_run() {
        const NVIDIA: &str = "nvptx64-nvidia-cuda";
        const AMD: &str = "amdgcn-amd-amdhsa";
        for (triple, image, target, expected) in [
            (NVIDIA, "sm_80", "sm_86", true),
            (NVIDIA, "sm_86", "sm_80", false),
            (NVIDIA, "sm_80", "sm_90", false),
            (AMD, "gfx90a", "gfx90a:xnack+", true),
            (AMD, "gfx90a:xnack+", "gfx90a", false),
            (AMD, "gfx9-generic", "gfx906", true),
            (AMD, "gfx906", "gfx90a", false),
            ("x86_64-pc-linux-gnu", "", "", true),
        ] {
            let [image_target, wanted] = [image, target].map(|name| (triple.into(), name.into()));
            let found = can_run(&image_target, &wanted);
            assert_eq!(found, expected, "{image} on {target}");
        }
    }
}
