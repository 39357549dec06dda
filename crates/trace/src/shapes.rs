//! Shapes of arguments, as traces have them and as torch's tables show them.

/// The shapes of arguments as Python prints them: one space after each comma, none elsewhere, and
/// nothing of those of a list of tensors.
pub(crate) fn as_python(list: &str) -> String {
    let mut text = String::with_capacity(list.len());
    let (mut depth, mut opened) = (0, 0);
    // Whether the argument at hand is a list of tensors.
    let mut is_list = false;
    for c in list.chars().filter(|c| !c.is_whitespace()) {
        depth += i32::from(c == '[');
        match (c, depth) {
            ('[', 3) => {
                text.truncate(opened);
                is_list = true;
            }
            (']', 2) => {
                is_list = false;
                text.push(c);
            }
            _ if is_list => {}
            (',', _) => text.push_str(", "),
            _ => text.push(c),
        }
        if c == '[' && depth == 2 {
            opened = text.len();
        }
        depth -= i32::from(c == ']');
    }
    if text.is_empty() { "[]".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::as_python;

    #[test]
    fn shapes_are_shown_as_torch_shows_them() {
        assert_eq!(as_python(""), "[]");
        assert_eq!(as_python("[[2,3],[]]"), "[[2, 3], []]");
        assert_eq!(as_python("[[[2, 3], [4, 3]], [], [1]]"), "[[], [], [1]]");
    }
}
