//! The pictures of `docs/pictures`: for light and dark backgrounds, without script or paths of a machine; the drawn ones are
//! what the script draws, and bars are the figures of `docs/benchmarks.md`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{program, run};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/pictures"))
}

#[test]
fn are_safe_and_for_both_backgrounds() {
    let pictures = fs::read_dir(folder()).unwrap();
    let pictures = pictures.map(|entry| entry.unwrap().path());
    let pictures: Vec<PathBuf> = pictures
        .filter(|path| path.extension().is_some_and(|extension| extension == "svg"))
        .collect();
    assert!(pictures.len() > 4, "{pictures:?}");
    for path in pictures {
        let name = path.file_name().unwrap().to_str().unwrap();
        let picture = fs::read_to_string(&path).unwrap();
        assert!(picture.starts_with("<svg "), "{name}");
        assert!(picture.ends_with("</svg>\n"), "{name}");
        assert!(picture.contains("prefers-color-scheme:dark"), "{name}");
        for bad in ["<script", "/home/", "/root", "/tmp", "\u{1b}"] {
            assert!(!picture.contains(bad), "{name}: {bad:?}");
        }
    }
}

#[test]
fn are_what_the_script_draws() {
    let Some(python) = program("python3") else {
        return;
    };
    run(Command::new(python)
        .arg(folder().join("make"))
        .arg("--check"));
}

/// A table of a bench: its title, and the name and the time of each row.
type Table = (String, Vec<(String, String)>);

#[test]
fn draw_the_figures_of_the_page() {
    let page = fs::read_to_string(folder().join("../benchmarks.md")).unwrap();
    let pictures = page.split("](pictures/").skip(1);
    let pictures: Vec<(&str, &str)> = pictures
        .map(|rest| {
            let (name, rest) = rest.split_once(')').unwrap();
            let (_, rest) = rest.split_once("\n```text\n").unwrap();
            (name, rest.split_once("```").unwrap().0)
        })
        .collect();
    let names: Vec<&str> = pictures.iter().map(|(name, _)| *name).collect();
    assert!(names.len() > 5, "{names:?}");
    for (name, block) in pictures {
        let (drawn, lengths) = drawn(&fs::read_to_string(folder().join(name)).unwrap());
        let mut tables = printed(block);
        tables.retain(|(title, _)| !title.ends_with(", --dry-run"));
        assert_eq!(drawn, tables, "{name}");
        for ((title, rows), lengths) in tables.iter().zip(lengths) {
            let times: Vec<f64> = rows.iter().map(|(_, time)| milliseconds(time)).collect();
            let most = times.iter().copied().fold(0.0, f64::max);
            let longest = lengths.iter().copied().fold(0.0, f64::max);
            for (time, length) in times.iter().zip(lengths) {
                let expected = (time / most * longest).max(1.0);
                assert!(
                    (length - expected).abs() < 0.1,
                    "{name}: {title}: {time} ms: {length}"
                );
            }
        }
    }
}

/// Returns the tables with times that a bench printed.
fn printed(block: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for line in block.lines().filter(|line| !line.is_empty()) {
        let Some(row) = line.strip_prefix("  ") else {
            tables.push((line.to_owned(), Vec::new()));
            continue;
        };
        let row = match (row.split_once(" median "), row.split_once("   processors ")) {
            (Some((name, times)), _) => {
                let times = times.trim_start();
                times.split_once("   ").map(|(time, _)| (name, time))
            }
            (None, Some((row, _))) => {
                let number = row.trim_end_matches(" s").rfind(' ').unwrap();
                Some(row.split_at(number))
            }
            (None, None) => None,
        };
        let row = row.map(|(name, time)| (name.trim().to_owned(), time.trim().to_owned()));
        tables.last_mut().unwrap().1.extend(row);
    }
    tables.retain(|(_, rows)| !rows.is_empty());
    tables
}

/// Returns the tables that a picture shows, and the lengths of the bars of each.
fn drawn(picture: &str) -> (Vec<Table>, Vec<Vec<f64>>) {
    let (mut tables, mut lengths) = (Vec::<Table>::new(), Vec::<Vec<f64>>::new());
    for line in picture.lines() {
        if let Some((_, width)) = line.split_once(" width=\"").filter(|_| is_bar(line)) {
            let width = width.split_once('"').unwrap().0.parse().unwrap();
            lengths.last_mut().unwrap().push(width);
        }
        let Some(text) = line.strip_suffix("</text>") else {
            continue;
        };
        let (attributes, text) = text.split_once('>').unwrap();
        let text = text.replace("&lt;", "<").replace("&gt;", ">");
        let text = text.replace("&amp;", "&");
        if attributes.contains("font-weight=\"600\"") {
            tables.push((text, Vec::new()));
            lengths.push(Vec::new());
        } else if attributes.contains("text-anchor=\"end\"") {
            tables.last_mut().unwrap().1.push((text, String::new()));
        } else {
            let row = tables.last_mut().unwrap().1.last_mut().unwrap();
            assert_eq!(row.1, "", "one time for {}", row.0);
            row.1 = text;
        }
    }
    (tables, lengths)
}

fn is_bar(line: &str) -> bool {
    ["cyan", "dim"]
        .iter()
        .any(|class| line.starts_with(&format!("<rect class=\"{class}\"")))
}

fn milliseconds(time: &str) -> f64 {
    let (number, unit) = time.split_once(' ').unwrap();
    let number: f64 = number.parse().unwrap();
    match unit {
        "ms" => number,
        "s" => number * 1000.0,
        unit => panic!("a unit of time: {unit}"),
    }
}
