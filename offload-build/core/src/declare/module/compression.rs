//! The key `compress`: how a module's images are compressed in their container.

use crate::declare::family::Family;
use crate::declare::language::Container;
use crate::declare::module::choices::{Register, is_of_others};
use crate::declare::settings::Settings;
use crate::error::Error;
use offload_formats_core::format::compressed_bundle::Method;
use offload_formats_core::format::fatbin::FatbinCompressor;
use std::path::Path;

/// How images are compressed in their container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageCompression {
    /// Nobody says: not at all, but nvcc compresses PTX among the images that it registers.
    Unset,
    /// Not at all.
    None,
    /// By LZ4, in fat binaries.
    Lz4,
    /// By zlib with this level, in bundles.
    Zlib(Option<i32>),
    /// By Zstandard with this level.
    Zstd(Option<i32>),
}

impl ImageCompression {
    /// Reads the key for images in `container`, which `register` registers.
    pub(super) fn of(
        settings: &Settings,
        container: Container,
        register: Register,
        has_host_code: bool,
    ) -> Result<Self, Error> {
        let Some(text) = settings.text("compress") else {
            return Ok(Self::Unset);
        };
        let wrong = |problem: String| Err(settings.error_at("compress", problem));
        let unfit = |problem: String| match is_of_others(settings, "compress") {
            true => Ok(Self::Unset),
            false => wrong(problem),
        };
        let Some(how) = Self::parse(text) else {
            return wrong(format!(
                "`{text}` is not one of `none`, `lz4`, `zlib`, `zstd`, or one of the last two with a level: `zstd:19`"
            ));
        };
        let read = match (container, how) {
            (_, Self::None | Self::Unset)
            | (Container::Bundle, Self::Zlib(_) | Self::Zstd(_))
            | (Container::Fatbin, Self::Lz4 | Self::Zstd(_)) => "",
            (Container::Bundle, Self::Lz4) => "HIP's runtime reads `zlib` and `zstd`",
            (Container::Fatbin, Self::Zlib(_)) => "CUDA's driver reads `lz4` and `zstd`",
            (other, _) => {
                return unfit(format!(
                    "`compress` needs the container `bundle` or `fatbin`, found `{}`",
                    other.name()
                ));
            }
        };
        if !read.is_empty() {
            return unfit(format!("`{text}` in a `{}`: {read}", container.name()));
        }
        if register == Register::Deferred && how != Self::None {
            return unfit(
                "the last link writes the container of a `deferred` module: pass `--compress` to `offload-link`"
                    .to_owned(),
            );
        }
        let family = Family::of(Path::new(settings.text("compiler").unwrap_or_default()));
        let is_of_nvcc = has_host_code && family == Family::Nvcc;
        if let Some((method, Some(level))) = how.of_bundle() {
            let levels = method.levels();
            if !levels.contains(&level) {
                let (first, last) = (levels.start(), levels.end());
                return wrong(format!(
                    "`{text}`: levels of `{method}` are {first} to {last}"
                ));
            }
        }
        match how {
            Self::Zstd(Some(_)) if is_of_nvcc => wrong(format!(
                "`{text}`: `nvcc` has no levels\nhint: write `zstd`"
            )),
            Self::Zlib(_) => how.built_in(settings, text, Method::Zlib),
            // What nvcc compressed is read, too.
            Self::Zstd(_) => how.built_in(settings, text, Method::Zstd),
            _ => Ok(how),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (method, level) = match text.split_once(':') {
            Some((method, level)) => (method, Some(level.parse().ok()?)),
            None => (text, None),
        };
        match (method, level) {
            ("none", None) => Some(Self::None),
            ("lz4", None) => Some(Self::Lz4),
            ("zlib", level) => Some(Self::Zlib(level)),
            ("zstd", level) => Some(Self::Zstd(level)),
            _ => None,
        }
    }

    /// Checks that its method is built in.
    fn built_in(self, settings: &Settings, text: &str, method: Method) -> Result<Self, Error> {
        if method.is_built_in() {
            return Ok(self);
        }
        let problem = format!(
            "`{text}` needs a feature of `offload-build` [OFF507]\n\
             hint: `cargo add --build offload-build --features {method}`"
        );
        Err(settings.error_at("compress", problem))
    }

    /// Returns the method of a bundle, and its level.
    #[must_use]
    pub fn of_bundle(self) -> Option<(Method, Option<i32>)> {
        match self {
            Self::Zlib(level) => Some((Method::Zlib, level)),
            Self::Zstd(level) => Some((Method::Zstd, level)),
            Self::Unset | Self::None | Self::Lz4 => None,
        }
    }

    /// Returns the method of a fat binary's images.
    #[must_use]
    pub fn of_fatbin(self) -> Option<FatbinCompressor> {
        match self {
            Self::Lz4 => Some(FatbinCompressor::Lz4),
            Self::Zstd(level) => Some(FatbinCompressor::Zstd { level }),
            Self::Unset | Self::None | Self::Zlib(_) => None,
        }
    }
}
