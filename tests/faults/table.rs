//! docs/faults.md: every target has a row, and every test that it names exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Adds the names of all tests in the sources below `folder`.
fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(tests_of(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The functions that stand below `#[test]`.
fn tests_of(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in source.split("#[test]").skip(1) {
        let name = part.split("fn ").nth(1).and_then(|rest| rest.split('(').next());
        found.extend(name.map(str::to_owned));
    }
    found
}

/// What stands between backticks in a row, where it looks like a sentence.
fn named(row: &str) -> impl Iterator<Item = &str> {
    row.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.matches('_').count() >= 3 && !word.contains(['=', ' ', '/']))
}

#[test]
fn the_table_of_faults_names_every_target_and_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = BTreeSet::new();
    for folder in ["crates", "tests", "src"] {
        collect(&root.join(folder), &mut tests);
    }
    let page = fs::read_to_string(root.join("docs/faults.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| T")).collect();
    let targets: Vec<String> =
        rows.iter().map(|row| row[2..].split(' ').next().unwrap().to_owned()).collect();
    let expected: Vec<String> = (1..=47).map(|number| format!("T{number}")).collect();
    assert_eq!(targets, expected, "one row per target, in order");
    for row in rows {
        let result = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let told = ["met", "in part: ", "not met: "].iter().any(|start| result.starts_with(start));
        assert!(told, "{row} does not say whether it is met");
        assert!(named(row).count() > 0 || result.starts_with("not met"), "{row} names no test");
    }
    for name in page.lines().flat_map(named) {
        assert!(tests.contains(name), "docs/faults.md names {name}, and there is no such test");
    }
}
