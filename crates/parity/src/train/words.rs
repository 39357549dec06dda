//! Calls as descriptions write them, e.g. `Conv2d(1,6,3,pad=1)` or `LSTM(5,12,batch_first)`.

use crate::golden::Passed;
use crate::value::Value;
use cresset_tensor::Scalar;

/// A name and what is passed to it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) passed: Arguments,
}

/// What stands between the parentheses, in order.
pub(super) type Arguments = Vec<Argument>;

/// One argument.
#[derive(Debug)]
pub(super) enum Argument {
    Value(Value),
    Named(String, Value),
    /// A word that is no value: `batch_first`, `no bias`.
    Word(String),
}

impl Call {
    /// The call that `text` begins with, and what follows it. A name alone passes nothing.
    pub(super) fn parse(text: &str) -> Option<(Call, &str)> {
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if name.is_empty() {
            return None;
        }
        let name = name.to_owned();
        let Some(inner) = rest.strip_prefix('(') else {
            return Some((Call { name, passed: Vec::new() }, rest.trim()));
        };
        let (inside, rest) = inner.split_at(closing(inner)?);
        let arguments = inside.split(',').map(str::trim).filter(|argument| !argument.is_empty());
        Some((Call { name, passed: arguments.map(Argument::parse).collect() }, rest[1..].trim()))
    }

    /// As a constructor is called: words that are no values are explained by `meaning`, and short
    /// names by `full_name`. None if a word has no meaning.
    pub(super) fn passed(
        &self,
        full_name: fn(&str) -> &str,
        meaning: fn(&str) -> Option<(&'static str, Value)>,
    ) -> Option<Passed> {
        let mut passed = Passed::default();
        for argument in &self.passed {
            match argument {
                Argument::Value(value) => passed.args.push(value.clone()),
                Argument::Named(name, value) => {
                    passed.kwargs.push((full_name(name).to_owned(), value.clone()));
                }
                Argument::Word(word) => {
                    let (name, value) = meaning(word)?;
                    passed.kwargs.push((name.to_owned(), value));
                }
            }
        }
        Some(passed)
    }
}

impl Argument {
    fn parse(text: &str) -> Argument {
        if let Some((name, word)) = text.split_once('=') {
            let word = word.trim();
            let value = value(word).unwrap_or_else(|| Value::Text(word.trim_matches('\'').to_owned()));
            return Argument::Named(name.trim().to_owned(), value);
        }
        value(text).map_or_else(|| Argument::Word(text.to_owned()), Argument::Value)
    }
}

/// Where the parenthesis is closed that was opened just before `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn value(word: &str) -> Option<Value> {
    let scalar = match word {
        "None" => return Some(Value::None),
        "True" | "true" => Scalar::Bool(true),
        "False" | "false" => Scalar::Bool(false),
        _ => match word.parse() {
            Ok(number) => Scalar::Int(number),
            // Words such as `inf` and `nan` are numbers to the parser as well.
            Err(_) => Scalar::Float(word.parse().ok()?),
        },
    };
    Some(Value::Scalar(scalar))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_values_names_and_words() {
        let (call, rest) = Call::parse("Conv2d(1,6, 3,pad=1,no bias) (train mode)").unwrap();
        assert_eq!((call.name.as_str(), rest), ("Conv2d", "(train mode)"));
        let told: Vec<String> = call.passed.iter().map(|argument| format!("{argument:?}")).collect();
        assert_eq!(told[1], "Value(Scalar(Int(6)))");
        assert_eq!(told[3], "Named(\"pad\", Scalar(Int(1)))");
        assert_eq!(told[4], "Word(\"no bias\")");
    }

    #[test]
    fn a_name_alone_is_a_call_and_an_open_parenthesis_is_none() {
        let (call, rest) = Call::parse(" ReLU -> x").unwrap();
        assert_eq!((call.name.as_str(), call.passed.len(), rest), ("ReLU", 0, "-> x"));
        assert!(Call::parse("Linear(1, 2").is_none());
        assert!(Call::parse("(1)").is_none());
    }
}
