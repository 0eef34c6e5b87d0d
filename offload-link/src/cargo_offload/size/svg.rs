//! The treemap of a file's images or kernels as SVG: light and dark, without script.

use std::fmt::Write as _;

use offload_formats::escape::terminal;

use super::measure::MeasuredFile;
use super::treemap::{Rectangle, divide};
use crate::cargo_offload::kernels::shown_name;
use crate::cargo_offload::text;

/// Size of the picture in pixels.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 760.0;
/// Height of the title, and of a group's label, in pixels.
const TITLE: f64 = 34.0;
const LABEL: f64 = 18.0;
/// Average width of a character in a label's font, in pixels.
const CHARACTER: f64 = 6.6;
/// Smallest area of a rectangle of its own, in square pixels; smaller images of a group share one.
const SMALLEST: f64 = 16.0;
/// Number of colors of targets.
const COLORS: usize = 8;

const STYLE: &str = "\
text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#1b1f24}
.t{font-size:17px;font-weight:600}.g{font-weight:600}
.b{fill:#fff}.h{fill:#d0d7de}.c rect,rect.h{stroke:#fff;stroke-width:1}
.c0{fill:#f4a3a3}.c1{fill:#9cc9f5}.c2{fill:#a8dcb0}.c3{fill:#f3cf8e}
.c4{fill:#cbb4f0}.c5{fill:#8fdad8}.c6{fill:#f2b1d8}.c7{fill:#c9d58f}
.s{fill-opacity:.55}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#0d1117}.h{fill:#30363d}
.c rect,rect.h{stroke:#0d1117}
.c0{fill:#7d3236}.c1{fill:#1f4f7d}.c2{fill:#23623a}.c3{fill:#76551a}
.c4{fill:#51408a}.c5{fill:#1c615f}.c6{fill:#7a3160}.c7{fill:#57631c}}
";

/// A group of images in the picture.
struct TreemapGroup<'a> {
    label: String,
    size: u64,
    class: String,
    /// The largest first.
    items: Vec<TreemapItem<'a>>,
    /// Noun for several items that are too small for rectangles.
    noun: &'static str,
}

/// An image or a kernel in the picture.
struct TreemapItem<'a> {
    size: u64,
    name: std::borrow::Cow<'a, str>,
    /// Text for the pointer.
    title: String,
}

/// Returns the picture.
pub(super) fn draw(file: &MeasuredFile) -> String {
    let groups = groups(file);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n\
         <rect class=\"b\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <text class=\"t\" x=\"8\" y=\"22\">{title}</text>\n",
        title = escaped(&title(file)),
    );
    let whole = Rectangle {
        x: 4.0,
        y: TITLE,
        width: WIDTH - 8.0,
        height: HEIGHT - TITLE - 4.0,
    };
    let sizes: Vec<u64> = groups.iter().map(|group| group.size).collect();
    for (group, place) in groups.iter().zip(divide(&sizes, whole)) {
        draw_group(group, place, &mut svg);
    }
    svg += "</svg>\n";
    svg
}

fn title(file: &MeasuredFile) -> String {
    let (device, all) = (file.device(), file.size);
    let share = text::share(device, all);
    format!(
        "{}: {}, device code {} ({share})",
        file.name,
        text::size(all),
        text::size(device)
    )
}

/// Returns the targets and the remainder of the file, the largest first.
fn groups(file: &MeasuredFile) -> Vec<TreemapGroup<'_>> {
    let mut groups: Vec<TreemapGroup<'_>> = file
        .targets
        .iter()
        .enumerate()
        .map(|(index, (target, sizes))| TreemapGroup {
            label: format!("{target} {}", text::size(sizes.stored)),
            size: sizes.stored,
            class: format!("c{}", index % COLORS),
            items: match file.target_kernels.get(target) {
                Some(kernels) => kernel_items(kernels, target, sizes.stored),
                None => image_items(file, target),
            },
            noun: match file.target_kernels.contains_key(target) {
                true => "smaller kernel",
                false => "smaller image",
            },
        })
        .collect();
    let images: u64 = groups.iter().map(|group| group.size).sum();
    let remainder = file.size.saturating_sub(images);
    groups.push(TreemapGroup {
        label: format!("host code and data {}", text::size(remainder)),
        size: remainder,
        class: "h".to_owned(),
        items: Vec::new(),
        noun: "",
    });
    groups.retain(|group| group.size > 0);
    // The order is total: labels differ.
    groups.sort_by(|one, two| (two.size, &one.label).cmp(&(one.size, &two.label)));
    groups
}

/// Returns the images for a target, the largest first.
fn image_items<'a>(file: &'a MeasuredFile, target: &str) -> Vec<TreemapItem<'a>> {
    let mut images = Vec::new();
    for container in &file.containers {
        let inside = container.images.iter();
        let inside = inside.filter(|image| image.target == target && image.stored > 0);
        images.extend(inside.map(|image| (image, &container.place)));
    }
    images.sort_by_key(|(image, _)| (std::cmp::Reverse(image.stored), image.number));
    let items = images.into_iter().map(|(image, place)| TreemapItem {
        size: image.stored,
        name: place.into(),
        title: format!(
            "{place}: image {}, {}, {}",
            image.number,
            image.target,
            text::size(image.stored)
        ),
    });
    items.collect()
}

/// Returns the kernels for a target, the largest first, and the remainder of its images. Sizes are shares of `stored`,
/// the size of the images in the file.
fn kernel_items<'a>(kernels: &[(String, u64)], target: &str, stored: u64) -> Vec<TreemapItem<'a>> {
    let kernels = kernels.iter().filter(|(_, size)| *size > 0);
    let mut items: Vec<TreemapItem<'a>> = kernels
        .map(|(symbol, size)| {
            let name = terminal(&shown_name(symbol)).to_string();
            TreemapItem {
                size: *size,
                title: format!("{name}: {target}, {}", text::size(*size)),
                name: name.into(),
            }
        })
        .collect();
    let code = items.iter().map(|item| item.size).sum::<u64>();
    let name = "data, headers, other functions";
    let size = stored.saturating_sub(code);
    items.push(TreemapItem {
        size,
        name: name.into(),
        title: format!("{name}: {target}, {}", text::size(size)),
    });
    items.retain(|item| item.size > 0);
    // Stable: kernels of one size stay in the order of their symbols.
    items.sort_by_key(|item| std::cmp::Reverse(item.size));
    items
}

fn draw_group(group: &TreemapGroup<'_>, place: Rectangle, svg: &mut String) {
    let is_labeled = place.height > LABEL + 6.0 && place.width > 40.0;
    let class = &group.class;
    let label = escaped(&group.label);
    let _ = write!(svg, "<g class=\"c\"><title>{label}</title>");
    rectangle(class, place, svg);
    if is_labeled {
        let (x, y) = (place.x + 5.0, place.y + 13.0);
        let shown = escaped(&fitting(&group.label, place.width - 8.0));
        let _ = write!(
            svg,
            "<text class=\"g\" x=\"{x:.1}\" y=\"{y:.1}\">{shown}</text>"
        );
    }
    *svg += "</g>\n";
    if group.items.len() < 2 {
        return;
    }
    let top = if is_labeled { LABEL } else { 2.0 };
    let inside = place.inside(2.0, top);
    let (large, small) = split(&group.items, inside);
    let small_size: u64 = small.iter().map(|item| item.size).sum();
    let mut sizes: Vec<u64> = large.iter().map(|item| item.size).collect();
    if small_size > 0 {
        sizes.push(small_size);
    }
    let mut places = divide(&sizes, inside).into_iter();
    for (item, place) in large.iter().zip(places.by_ref()) {
        draw_item(class, &item.title, &item.name, place, svg);
    }
    if let Some(place) = places.next() {
        let label = format!(
            "{}, {}",
            text::count(small.len(), group.noun),
            text::size(small_size)
        );
        draw_item(class, &label, &label, place, svg);
    }
}

type TreemapItems<'a, 'b> = &'a [TreemapItem<'b>];

/// Divides items into those with a rectangle of their own and the smaller ones.
fn split<'a, 'b>(
    items: TreemapItems<'a, 'b>,
    inside: Rectangle,
) -> (TreemapItems<'a, 'b>, TreemapItems<'a, 'b>) {
    let all: u64 = items.iter().map(|item| item.size).sum();
    let area = inside.width * inside.height;
    let is_large =
        |item: &&TreemapItem<'_>| item.size as f64 / all.max(1) as f64 * area >= SMALLEST;
    let count = items.iter().take_while(is_large).count();
    items.split_at(count)
}

fn draw_item(class: &str, label: &str, name: &str, place: Rectangle, svg: &mut String) {
    let label = escaped(label);
    let _ = write!(svg, "<g class=\"c\"><title>{label}</title>");
    rectangle(&format!("{class} s"), place, svg);
    // A label that says less than three characters is noise.
    if place.height > 16.0 && place.width > 4.0 * CHARACTER {
        let (x, y) = (place.x + 4.0, place.y + 13.0);
        let shown = escaped(&fitting(name, place.width - 6.0));
        let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\">{shown}</text>");
    }
    *svg += "</g>\n";
}

fn rectangle(class: &str, place: Rectangle, svg: &mut String) {
    let Rectangle {
        x,
        y,
        width,
        height,
    } = place;
    let _ = write!(
        svg,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
    );
}

/// Cuts a label to a width in pixels.
fn fitting(label: &str, width: f64) -> String {
    let room = (width / CHARACTER).max(0.0) as usize;
    let length = label.chars().count();
    match length <= room {
        true => label.to_owned(),
        // The end of a name tells more than its start: offsets, file names.
        false => {
            let kept = room.saturating_sub(1);
            let end: String = label.chars().skip(length - kept).collect();
            format!("…{end}")
        }
    }
}

/// Escapes text for XML and HTML. Control characters are escaped before, as for terminals.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            // Not allowed in XML 1.0, even escaped.
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_markup_and_control_characters() {
        assert_eq!(
            escaped("<a href='x'>&\"\x1b"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}"
        );
    }

    #[test]
    fn cuts_labels_at_their_start() {
        assert_eq!(fitting("abc", 100.0), "abc");
        assert_eq!(fitting("abcdefgh", 4.0 * CHARACTER), "…fgh");
        assert_eq!(fitting("abc", 0.0), "…");
    }
}
