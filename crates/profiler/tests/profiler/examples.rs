//! The documentation shows each public item at work.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The name of what a line makes public: a function, a type, a constant or a trait.
fn public_item(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("const fn ").map_or(rest, |_| &rest["const ".len()..]);
    let (kind, rest) = rest.split_once(' ')?;
    let is_item = ["fn", "struct", "enum", "trait", "type", "const", "static"].contains(&kind);
    is_item.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(rest))
}

#[test]
fn every_public_item_has_an_example() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let (mut items, mut without) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let (mut has_example, mut is_hidden) = (false, false);
        for line in text.lines() {
            match line.trim_start() {
                doc if doc.starts_with("///") => has_example |= doc.starts_with("/// ```"),
                attribute if attribute.starts_with("#[") => is_hidden |= attribute == "#[doc(hidden)]",
                _ => {
                    if let Some(item) = public_item(line).filter(|_| !is_hidden) {
                        items += 1;
                        if !has_example {
                            without.push(format!("{}: {item}", file.display()));
                        }
                    }
                    (has_example, is_hidden) = (false, false);
                }
            }
        }
    }
    assert!(without.is_empty(), "no example:\n{}", without.join("\n"));
    assert!(items > 150, "only {items} public items were found");
}
