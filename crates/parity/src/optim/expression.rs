//! Functions of `epoch`, as Python writes them.

/// What an expression is made of.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    Number(f64),
    Epoch,
    Negative(Box<Expression>),
    Pair(Operator, Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

impl Expression {
    /// Reads `text`; `None` if it is none of ours.
    pub(super) fn parse(text: &str) -> Option<Expression> {
        let text = text.trim();
        let text = text.strip_prefix("lambda epoch:").unwrap_or(text);
        let mut rest = text.trim();
        let expression = sum(&mut rest)?;
        rest.trim().is_empty().then_some(expression)
    }

    /// The value at `epoch`.
    pub(super) fn at(&self, epoch: f64) -> f64 {
        match self {
            Expression::Number(number) => *number,
            Expression::Epoch => epoch,
            Expression::Negative(inner) => -inner.at(epoch),
            Expression::Pair(operator, a, b) => {
                let (a, b) = (a.at(epoch), b.at(epoch));
                match operator {
                    Operator::Add => a + b,
                    Operator::Subtract => a - b,
                    Operator::Multiply => a * b,
                    Operator::Divide => a / b,
                    Operator::FloorDivide => (a / b).floor(),
                    Operator::Remainder => a - (a / b).floor() * b,
                    Operator::Power => a.powf(b),
                }
            }
        }
    }
}

/// Takes one of `signs` from the front.
fn take(rest: &mut &str, signs: &[(&str, Operator)]) -> Option<Operator> {
    let text = rest.trim_start();
    let (sign, operator) = signs.iter().find(|(sign, _)| text.starts_with(sign))?;
    // A power is not two products.
    if *sign == "*" && text.starts_with("**") {
        return None;
    }
    *rest = &text[sign.len()..];
    Some(*operator)
}

fn pair(operator: Operator, a: Expression, b: Expression) -> Expression {
    Expression::Pair(operator, Box::new(a), Box::new(b))
}

fn sum(rest: &mut &str) -> Option<Expression> {
    let mut left = product(rest)?;
    while let Some(operator) = take(rest, &[("+", Operator::Add), ("-", Operator::Subtract)]) {
        left = pair(operator, left, product(rest)?);
    }
    Some(left)
}

fn product(rest: &mut &str) -> Option<Expression> {
    let signs = [
        ("//", Operator::FloorDivide),
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ];
    let mut left = signed(rest)?;
    while let Some(operator) = take(rest, &signs) {
        left = pair(operator, left, signed(rest)?);
    }
    Some(left)
}

fn signed(rest: &mut &str) -> Option<Expression> {
    match take(rest, &[("-", Operator::Subtract)]) {
        Some(_) => Some(Expression::Negative(Box::new(signed(rest)?))),
        None => power(rest),
    }
}

fn power(rest: &mut &str) -> Option<Expression> {
    let base = atom(rest)?;
    match take(rest, &[("**", Operator::Power)]) {
        Some(operator) => Some(pair(operator, base, signed(rest)?)),
        None => Some(base),
    }
}

fn atom(rest: &mut &str) -> Option<Expression> {
    let text = rest.trim_start();
    if let Some(inner) = text.strip_prefix('(') {
        let mut inner = inner;
        let expression = sum(&mut inner)?;
        *rest = inner.trim_start().strip_prefix(')')?;
        return Some(expression);
    }
    if let Some(after) = text.strip_prefix("epoch") {
        *rest = after;
        return Some(Expression::Epoch);
    }
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let mut end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    if let Some(exponent) = text[end..].strip_prefix('e').filter(|_| end > 0) {
        let digits = exponent.trim_start_matches(['-', '+']);
        end = text.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    }
    let number = text[..end].parse().ok()?;
    *rest = &text[end..];
    Some(Expression::Number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_python_says() {
        for (text, expected) in [
            ("0.95**epoch", 0.95f64.powi(7)),
            ("0.95", 0.95),
            ("lambda epoch: 1 / (epoch + 1)", 1.0 / 8.0),
            ("0.5 ** (epoch // 3)", 0.25),
            ("-2**2 + epoch % 4 * 1e-1", -3.7),
        ] {
            let got = Expression::parse(text).unwrap().at(7.0);
            assert!((got - expected).abs() < 1e-15, "{text} is {got}, expected {expected}");
        }
        for text in ["epoch +", "math.cos(epoch)", "(1", ""] {
            assert!(Expression::parse(text).is_none(), "{text}");
        }
    }
}
