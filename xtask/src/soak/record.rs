//! The last result of each part, in the table of docs/faults.md.

use super::Part;
use super::programs::root;
use crate::Result;

/// Puts a row in the place of the one that the part had.
pub(super) fn write(part: Part, build: &str, outcome: std::result::Result<&str, String>) -> Result {
    use clap::ValueEnum as _;
    let value = part.to_possible_value().ok_or("every part has a name")?;
    let path = root().join("docs/faults.md");
    let page = std::fs::read_to_string(&path)?;
    let start = format!("| `{}` |", value.get_name());
    let result = match outcome {
        Ok(figures) => format!("passed: {figures}"),
        Err(error) => format!("failed: {}", error.lines().next().unwrap_or_default()),
    };
    let row = |line: &str| {
        let about = line.split(" | ").nth(1).unwrap_or_default();
        format!("{start} {about} | {build} | {result} |")
    };
    if !page.lines().any(|line| line.starts_with(&start)) {
        return Err(format!("{} has no row that starts with {start}", path.display()).into());
    }
    let lines: Vec<String> =
        page.lines().map(|line| if line.starts_with(&start) { row(line) } else { line.to_owned() }).collect();
    Ok(std::fs::write(path, lines.join("\n") + "\n")?)
}
