//! The images that a command line selects.

use std::fmt;

use offload_formats::container::inventory::PlacedImage;
use offload_formats::names::{OffloadKind, TargetId};

use super::error::CargoOffloadError;
use super::image_text;
use super::kernels::{FileKernels, is_called};
use super::target_name;

/// Options that select images; without them all images are selected.
#[derive(Debug, clap::Args)]
pub(super) struct SelectionOptions {
    /// Number of an image in the file, or a range such as 3-7, as `inspect` prints it.
    #[arg(long = "index", value_name = "NUMBER", value_delimiter = ',', value_parser = IndexRange::parse)]
    indices: Vec<IndexRange>,
    /// Target: a processor such as gfx90a, a target ID such as gfx90a:xnack+, or a triple.
    #[arg(long = "target", value_name = "TARGET", value_delimiter = ',', value_parser = target_name::parse)]
    targets: Vec<String>,
    /// Kind: hip, cuda, openmp or sycl.
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    kinds: Vec<String>,
    /// Kernel in the image: its symbol, or its name with or without parameters, as `inspect --kernels` prints it.
    #[arg(long = "kernel", value_name = "NAME")]
    kernels: Vec<String>,
}

/// Numbers of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IndexRange {
    first: usize,
    last: usize,
}

/// Checks the name of a kind.
fn kind(text: &str) -> Result<String, String> {
    match OffloadKind::from_name(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected hip, cuda, openmp or sycl".to_owned()),
    }
}

impl fmt::Display for IndexRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

impl IndexRange {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok();
        let range = match text.split_once('-') {
            Some((first, last)) => number(first).zip(number(last)),
            None => number(text).zip(number(text)),
        };
        match range {
            Some((first, last)) if first <= last => Ok(Self { first, last }),
            _ => Err("expected a number or a range such as 3-7".to_owned()),
        }
    }

    fn contains(self, number: usize) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

impl SelectionOptions {
    /// Tells whether the options select images by their kernels.
    pub(super) fn needs_kernels(&self) -> bool {
        !self.kernels.is_empty()
    }

    /// Tells whether the options select the image with that number. `kernels` are those of its file, if they are needed.
    pub(super) fn selects(
        &self,
        number: usize,
        placed: &PlacedImage<'_>,
        kernels: Option<&FileKernels>,
    ) -> bool {
        let has_kernel = |wanted: &String| has_kernel(kernels, number, wanted);
        let has_number = |range: &IndexRange| range.contains(number);
        let is_of = |wanted: &String| is_of_kind(placed, wanted);
        (self.indices.is_empty() || self.indices.iter().any(has_number))
            && (self.kinds.is_empty() || self.kinds.iter().any(is_of))
            && (self.targets.is_empty() || self.targets.iter().any(|wanted| is_for(placed, wanted)))
            && (self.kernels.is_empty() || self.kernels.iter().any(has_kernel))
    }

    /// Lists the arguments that select none of the selected images, each with its option.
    pub(super) fn without_images(
        &self,
        selected: &[(usize, PlacedImage<'_>)],
        kernels: Option<&FileKernels>,
    ) -> Vec<String> {
        let mut missing = Vec::new();
        for range in &self.indices {
            if !selected.iter().any(|(number, _)| range.contains(*number)) {
                missing.push(format!("--index {range}"));
            }
        }
        for wanted in &self.targets {
            if !selected.iter().any(|(_, placed)| is_for(placed, wanted)) {
                missing.push(format!("--target {wanted}"));
            }
        }
        for wanted in &self.kinds {
            let mut placed = selected.iter().map(|(_, placed)| placed);
            if !placed.any(|placed| is_of_kind(placed, wanted)) {
                missing.push(format!("--kind {wanted}"));
            }
        }
        for wanted in &self.kernels {
            let mut numbers = selected.iter().map(|(number, _)| *number);
            if !numbers.any(|number| has_kernel(kernels, number, wanted)) {
                missing.push(format!("--kernel {wanted}"));
            }
        }
        missing
    }

    /// Returns the error for a file without selected images. `targets` are its targets, `hint` is for a file without any.
    pub(super) fn nothing(
        &self,
        name: &str,
        targets: &[String],
        hint: Option<&str>,
    ) -> CargoOffloadError {
        let hint = hint.map_or(String::new(), |hint| format!("\nhint: {hint}"));
        match targets {
            [] => CargoOffloadError::new(format_args!("{name}: no device images{hint}")),
            _ if self.needs_kernels() => CargoOffloadError::new(format_args!(
                "{name}: no image matches; the file has images for {}\n\
                hint: `cargo offload inspect --kernels` lists the kernels of each image",
                targets.join(", ")
            )),
            _ => CargoOffloadError::new(format_args!(
                "{name}: no image matches; the file has images for {}",
                targets.join(", ")
            )),
        }
    }
}

/// Tells whether the image with that number has a kernel.
fn has_kernel(kernels: Option<&FileKernels>, number: usize, wanted: &str) -> bool {
    let kernels = kernels.and_then(|kernels| kernels.of(number));
    let mut kernels = kernels.unwrap_or_default().iter();
    kernels.any(|kernel| is_called(&kernel.name, wanted))
}

/// Tells whether an image is of a kind.
fn is_of_kind(placed: &PlacedImage<'_>, wanted: &str) -> bool {
    placed.image.target.kind.to_string() == wanted
}

/// Tells whether an image is for a target. A processor without features stands for all of its target IDs.
fn is_for(placed: &PlacedImage<'_>, wanted: &str) -> bool {
    let target = &placed.image.target;
    let processor = match TargetId::parse(&target.processor) {
        Ok(id) => id.processor().to_owned(),
        Err(_) => target.processor.clone(),
    };
    let entry_id = placed.image.entry_id.as_deref();
    [&processor, &target.processor, &target.triple].contains(&&wanted.to_owned())
        || entry_id == Some(wanted)
        || image_text::target(placed) == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_numbers_and_ranges() {
        let range = |first, last| Ok(IndexRange { first, last });
        assert_eq!(IndexRange::parse("3"), range(3, 3));
        assert_eq!(IndexRange::parse("3-7"), range(3, 7));
        for bad in ["", "-", "3-", "-3", "7-3", "x", "1-2-3"] {
            assert!(IndexRange::parse(bad).is_err(), "{bad}");
        }
    }
}
