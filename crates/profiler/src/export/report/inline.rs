//! JSON inside a page: nothing in it can end the element it stands in.

use std::io::{self, Write};

/// Writes JSON with every `<` as an escape. In JSON it occurs in strings only, so the value
/// stays the same, and no name can look like a tag.
pub(super) struct Inline<'a>(pub(super) &'a mut dyn Write);

impl Write for Inline<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (i, part) in bytes.split(|&byte| byte == b'<').enumerate() {
            if i > 0 {
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tag_survives_and_the_value_does() {
        let mut page = Vec::new();
        let json = r#"["</script><!--", "a < b", "<", ""]"#;
        Inline(&mut page).write_all(json.as_bytes()).unwrap();
        assert!(!page.contains(&b'<'));
        let back: Vec<String> = serde_json::from_slice(&page).unwrap();
        assert_eq!(back, ["</script><!--", "a < b", "<", ""]);
    }
}
