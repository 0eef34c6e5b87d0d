//! A squarified treemap: rectangles whose areas are in proportion to sizes, as close to squares as their order allows.
//!
//! Reference: M. Bruls, K. Huizing, J. van Wijk, "Squarified Treemaps" (2000).

/// A rectangle. The unit is up to the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rectangle {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rectangle {
    /// Returns the rectangle inside a border; empty if there is no room.
    pub(super) fn inside(self, border: f64, top: f64) -> Self {
        Self {
            x: self.x + border,
            y: self.y + top,
            width: (self.width - 2.0 * border).max(0.0),
            height: (self.height - border - top).max(0.0),
        }
    }

    fn area(self) -> f64 {
        self.width * self.height
    }
}

/// Divides a rectangle among `sizes`, which descend. The result has the same order.
pub(super) fn divide(sizes: &[u64], whole: Rectangle) -> Vec<Rectangle> {
    let total: f64 = sizes.iter().map(|size| *size as f64).sum();
    let scale = match total > 0.0 {
        true => whole.area() / total,
        false => 0.0,
    };
    let mut areas = sizes.iter().map(|size| *size as f64 * scale).peekable();
    let (mut left, mut rectangles) = (whole, Vec::new());
    while areas.peek().is_some() {
        let side = left.width.min(left.height);
        let mut row = Vec::new();
        // A row grows as long as its worst rectangle becomes more like a square.
        while let Some(area) = areas.peek() {
            let mut longer = row.clone();
            longer.push(*area);
            if !row.is_empty() && worst(&longer, side) > worst(&row, side) {
                break;
            }
            row = longer;
            areas.next();
        }
        left = place(&row, left, &mut rectangles);
    }
    rectangles
}

/// Returns the largest ratio of sides of the rectangles of a row along a side of that length.
fn worst(row: &[f64], side: f64) -> f64 {
    let sum: f64 = row.iter().sum();
    let thickness = sum / side;
    let ratios = row.iter().map(|area| {
        let length = area / thickness;
        (length / thickness).max(thickness / length)
    });
    ratios.fold(0.0, f64::max)
}

/// Adds the rectangles of a row along the shorter side, and returns the rest.
fn place(row: &[f64], left: Rectangle, rectangles: &mut Vec<Rectangle>) -> Rectangle {
    let sum: f64 = row.iter().sum();
    let is_wide = left.width >= left.height;
    let side = left.width.min(left.height);
    let thickness = match side > 0.0 {
        true => sum / side,
        false => 0.0,
    };
    let mut offset = 0.0;
    for area in row {
        let length = match sum > 0.0 {
            true => side * area / sum,
            false => 0.0,
        };
        rectangles.push(match is_wide {
            true => Rectangle {
                x: left.x,
                y: left.y + offset,
                width: thickness,
                height: length,
            },
            false => Rectangle {
                x: left.x + offset,
                y: left.y,
                width: length,
                height: thickness,
            },
        });
        offset += length;
    }
    match is_wide {
        true => Rectangle {
            x: left.x + thickness,
            width: (left.width - thickness).max(0.0),
            ..left
        },
        false => Rectangle {
            y: left.y + thickness,
            height: (left.height - thickness).max(0.0),
            ..left
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Rectangle = Rectangle {
        x: 0.0,
        y: 0.0,
        width: 6.0,
        height: 4.0,
    };

    /// The example of the paper: areas 6, 6, 4, 3, 2, 2, 1 in a rectangle of 6 by 4.
    #[test]
    fn places_rectangles_as_the_paper_does() {
        let found = divide(&[6, 6, 4, 3, 2, 2, 1], WHOLE);
        let sizes: Vec<(f64, f64)> = found.iter().map(|at| (at.width, at.height)).collect();
        let close =
            |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() < 0.01 && (b - d).abs() < 0.01;
        // Two of 3 by 2 on the left, then 4 and 3 above, then 2, 2 and 1.
        for (index, expected) in [
            (0, (3.0, 2.0)),
            (1, (3.0, 2.0)),
            (2, (1.71, 2.33)),
            (3, (1.29, 2.33)),
        ] {
            assert!(close(sizes[index], expected), "{index}: {sizes:?}");
        }
        let area: f64 = found.iter().map(|at| at.area()).sum();
        assert!((area - 24.0).abs() < 1e-9);
        for (index, one) in found.iter().enumerate() {
            assert!(one.x + one.width <= 6.0 + 1e-9 && one.y + one.height <= 4.0 + 1e-9);
            for two in &found[index + 1..] {
                let apart = one.x + one.width <= two.x + 1e-9
                    || two.x + two.width <= one.x + 1e-9
                    || one.y + one.height <= two.y + 1e-9
                    || two.y + two.height <= one.y + 1e-9;
                assert!(apart, "{one:?} {two:?}");
            }
        }
    }

    #[test]
    fn divides_nothing_and_zeros() {
        assert_eq!(divide(&[], WHOLE), []);
        let found = divide(&[0, 0], WHOLE);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|at| at.area() == 0.0 && at.x.is_finite()));
        let none = Rectangle {
            width: 0.0,
            ..WHOLE
        };
        assert!(divide(&[3, 1], none).iter().all(|at| at.width == 0.0));
    }
}
