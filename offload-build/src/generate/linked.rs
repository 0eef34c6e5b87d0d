//! The part of the file that reads the images.

use crate::generate::file::{Content, Image, Number, Place};
use crate::generate::template::fill;

/// Returns the functions that hand out the images of `content`; `visibility` is that of the images.
pub(crate) fn content(content: &Content, visibility: &str) -> String {
    let images = content.images();
    // The call pulls the object out of a static library.
    let pull = match content {
        Content::Linked {
            anchor: Some(anchor),
            ..
        }
        | Content::Deferred { anchor, .. }
        | Content::Kept { anchor, .. } => format!("    unsafe {{ {anchor}() }}\n"),
        Content::Linked { anchor: None, .. }
        | Content::Included { .. }
        | Content::OfSources { .. }
        | Content::NotBuilt(_) => String::new(),
    };
    fill(
        include_str!("templates/linked.rs.in"),
        &[
            ("declarations", &declarations(content)),
            ("image", &image(content)),
            ("visibility", visibility),
            ("count", &images.len().to_string()),
            ("images", &images.iter().map(row).collect::<String>()),
            ("pull", &pull),
        ],
    )
}

/// Returns what the images are read from.
fn declarations(content: &Content) -> String {
    match content {
        Content::Linked {
            anchor,
            container: (symbol, size),
            images,
            ..
        } => {
            let of_images = images.iter().filter_map(|image| match &image.place {
                Place::Symbol(symbol, size) => Some((symbol, *size)),
                Place::Part(_) | Place::OfSource(..) | Place::Nowhere => None,
            });
            let line = |(symbol, size): (&String, u64)| {
                format!("    static {symbol}: [u8; {}];\n", Number(size))
            };
            let all = [(symbol, *size)].into_iter().chain(of_images);
            let statics = all.map(line).collect::<String>();
            match anchor {
                Some(anchor) => library(anchor, &statics),
                None => fill(
                    include_str!("templates/images.rs.in"),
                    &[("statics", &statics)],
                ),
            }
        }
        Content::Deferred { anchor, .. } | Content::Kept { anchor, .. } => library(anchor, ""),
        Content::Included { file, size, .. } => fill(
            include_str!("templates/included.rs.in"),
            &[
                ("size", &Number(*size).to_string()),
                ("file", &format!("{:?}", format!("/{file}"))),
            ],
        ),
        Content::OfSources { .. } | Content::NotBuilt(_) => String::new(),
    }
}

/// Returns the declarations of symbols in the static library of the module.
fn library(anchor: &str, statics: &str) -> String {
    fill(
        include_str!("templates/library.rs.in"),
        &[("anchor", anchor), ("statics", statics)],
    )
}

/// Returns the value of the function that returns all images in their container.
fn image(content: &Content) -> String {
    let not_here = |anchor: &str, reason: &str| {
        let value = not_built(reason);
        format!("unsafe {{ {anchor}() }}\n    {value}")
    };
    match content {
        Content::Linked {
            anchor: Some(anchor),
            container: (symbol, _),
            ..
        } => format!("unsafe {{\n        {anchor}();\n        Ok(&{symbol})\n    }}"),
        Content::Linked {
            anchor: None,
            container: (symbol, _),
            is_container,
            images,
        } => of_images(
            *is_container,
            images,
            &format!("Ok(unsafe {{ &{symbol} }})"),
        ),
        Content::Deferred { anchor, .. } => not_here(
            anchor,
            "the images are linked by offload-link, with those of other crates",
        ),
        Content::Kept { anchor, .. } => {
            not_here(anchor, "the compiler has put the images into the host code")
        }
        Content::Included {
            is_container,
            images,
            ..
        } => of_images(*is_container, images, "Ok(&FILE.0)"),
        Content::OfSources { images } => {
            let mut modules = images.iter().filter_map(|image| match &image.place {
                Place::OfSource(module, _) => Some(module),
                _ => None,
            });
            let first = modules.next();
            match first.filter(|first| modules.all(|module| module == *first)) {
                Some(module) => format!("super::{module}::image()"),
                None => not_built("each source has its own images, in its own Rust module"),
            }
        }
        Content::NotBuilt(reason) => not_built(reason),
    }
}

/// Returns the value of that function for images without host code: `container`, or the only image.
fn of_images(is_container: bool, images: &[Image], container: &str) -> String {
    match (is_container, images) {
        (true, _) => container.to_owned(),
        (false, [_]) => "Ok(IMAGES[0].bytes)".to_owned(),
        (false, _) => not_built("the images are in no container: `images` has each"),
    }
}

fn not_built(reason: &str) -> String {
    format!("Err(super::NotBuilt {{ reason: {reason:?} }})")
}

/// Returns the row of an image.
fn row(image: &Image) -> String {
    let Image {
        target,
        source,
        kind,
        compiler,
        place,
    } = image;
    let bytes = match place {
        Place::Nowhere => "&[]".to_owned(),
        Place::OfSource(module, index) => format!("super::{module}::linked::IMAGES[{index}].bytes"),
        Place::Symbol(symbol, _) => format!("unsafe {{ &{symbol} }}"),
        Place::Part(range) => format!("part({}, {})", Number(range.start), Number(range.end)),
    };
    format!(
        "    super::Image {{ target: {target:?}, source: {source:?}, kind: {kind:?}, bytes: {bytes}, compiler: {compiler:?} }},\n"
    )
}
