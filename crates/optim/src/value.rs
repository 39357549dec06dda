//! Hyper-parameters by name, as state dicts and schedulers see them.

use crate::Implementation;
use cresset_tensor::{Cause, Error, Result};
use std::fmt;

/// A hyper-parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Not set.
    None,
    /// On or off.
    Bool(bool),
    /// A count.
    Int(i64),
    /// A number.
    Float(f64),
    /// One of several choices.
    Text(String),
    /// Several that belong together.
    List(Vec<Value>),
}

impl Value {
    /// The number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        f64::from_value(self)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => write!(f, "none"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Text(value) => write!(f, "{value:?}"),
            Value::List(values) => {
                let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", texts.join(", "))
            }
        }
    }
}

/// What a field of options can be.
pub trait Setting: Sized {
    /// What is accepted, for messages.
    const EXPECTED: &'static str;

    /// The field by itself.
    fn to_value(&self) -> Value;

    /// The field that a value stands for.
    fn from_value(value: &Value) -> Option<Self>;
}

impl Setting for f64 {
    const EXPECTED: &'static str = "a number";

    fn to_value(&self) -> Value {
        Value::Float(*self)
    }

    fn from_value(value: &Value) -> Option<f64> {
        match value {
            Value::Float(value) => Some(*value),
            Value::Int(value) => Some(*value as f64),
            _ => None,
        }
    }
}

impl Setting for bool {
    const EXPECTED: &'static str = "true or false";

    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }

    fn from_value(value: &Value) -> Option<bool> {
        if let Value::Bool(value) = value { Some(*value) } else { None }
    }
}

impl Setting for usize {
    const EXPECTED: &'static str = "a count";

    fn to_value(&self) -> Value {
        Value::Int(*self as i64)
    }

    fn from_value(value: &Value) -> Option<usize> {
        if let Value::Int(value) = value { usize::try_from(*value).ok() } else { None }
    }
}

impl<T: Setting> Setting for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::None, T::to_value)
    }

    fn from_value(value: &Value) -> Option<Option<T>> {
        if *value == Value::None { Some(None) } else { T::from_value(value).map(Some) }
    }
}

impl<A: Setting, B: Setting> Setting for (A, B) {
    const EXPECTED: &'static str = "a pair";

    fn to_value(&self) -> Value {
        Value::List(vec![self.0.to_value(), self.1.to_value()])
    }

    fn from_value(value: &Value) -> Option<(A, B)> {
        let Value::List(list) = value else { return None };
        let [a, b] = &list[..] else { return None };
        Some((A::from_value(a)?, B::from_value(b)?))
    }
}

impl Setting for (f64, f64, f64) {
    const EXPECTED: &'static str = "three numbers";

    fn to_value(&self) -> Value {
        Value::List([self.0, self.1, self.2].map(Value::Float).to_vec())
    }

    fn from_value(value: &Value) -> Option<(f64, f64, f64)> {
        let Value::List(list) = value else { return None };
        let [a, b, c] = &list[..] else { return None };
        Some((a.as_f64()?, b.as_f64()?, c.as_f64()?))
    }
}

/// Makes an enum of choices a [`Setting`], by the names that torch gives them.
macro_rules! choices {
    ($name:ident, $expected:literal: $($choice:ident = $text:literal),*) => {
        impl $crate::value::Setting for $name {
            const EXPECTED: &'static str = $expected;

            fn to_value(&self) -> $crate::Value {
                $crate::Value::Text(match self { $($name::$choice => $text,)* }.to_owned())
            }

            fn from_value(value: &$crate::Value) -> Option<$name> {
                let $crate::Value::Text(text) = value else { return None };
                match text.as_str() {
                    $($text => Some($name::$choice),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use choices;

choices!(Implementation, "\"fused\", \"foreach\" or \"single\"": Fused = "fused", Foreach = "foreach", Single = "single");

/// The numbers of an optimizer, by field and by name.
pub trait Options: Clone + fmt::Debug + Send + 'static {
    /// The optimizer, as torch calls it.
    const NAME: &'static str;

    /// Refuses numbers that the optimizer cannot work with.
    ///
    /// # Errors
    /// If there is one: it is named, with what would be accepted.
    fn check(&self) -> Result<()>;

    /// Each field with its name.
    fn entries(&self) -> Vec<(&'static str, Value)>;

    /// Changes a field.
    ///
    /// # Errors
    /// If there is none of this name, or it is of another kind.
    fn set(&mut self, name: &str, value: &Value) -> Result<()>;

    /// The learning rate.
    fn lr(&self) -> f64;

    /// Changes the learning rate.
    fn set_lr(&mut self, lr: f64);
}

/// Declares options: a struct, its defaults, and its fields by name.
macro_rules! options {
    ($(#[$doc:meta])* $struct:ident for $name:literal, $check:path {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $struct {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl Default for $struct {
            fn default() -> $struct {
                $struct { $($field: $default,)* }
            }
        }

        impl $crate::Options for $struct {
            const NAME: &'static str = $name;

            fn check(&self) -> $crate::Result<()> {
                $check(self)
            }

            fn entries(&self) -> Vec<(&'static str, $crate::Value)> {
                vec![$((stringify!($field), $crate::value::Setting::to_value(&self.$field)),)*]
            }

            fn set(&mut self, name: &str, value: &$crate::Value) -> $crate::Result<()> {
                match name {
                    $(stringify!($field) => self.$field = $crate::value::read($name, name, value)?,)*
                    _ => return Err($crate::value::unknown($name, name, &[$(stringify!($field)),*])),
                }
                Ok(())
            }

            fn lr(&self) -> f64 {
                self.lr
            }

            fn set_lr(&mut self, lr: f64) {
                self.lr = lr;
            }
        }
    };
}

pub(crate) use options;

pub(crate) fn read<T: Setting>(optimizer: &'static str, name: &str, value: &Value) -> Result<T> {
    T::from_value(value).ok_or_else(|| {
        let text = format_args!("{name} is {value}, expected {}", T::EXPECTED);
        Error::new(Cause::Argument, optimizer, text)
    })
}

pub(crate) fn unknown(optimizer: &'static str, name: &str, known: &[&str]) -> Error {
    let text = format_args!("has no option {name:?}, only {}", known.join(", "));
    Error::new(Cause::Argument, optimizer, text)
}

/// Refuses a number that an optimizer cannot work with.
pub(crate) fn check(
    optimizer: &'static str,
    what: &str,
    value: f64,
    allowed: bool,
    expected: &str,
) -> Result<()> {
    if allowed {
        return Ok(());
    }
    Err(Error::new(Cause::Argument, optimizer, format_args!("{what} is {value}, expected {expected}")))
}

/// Refuses numbers that are below 0 or not finite.
pub(crate) fn not_negative(optimizer: &'static str, numbers: &[(&str, f64)]) -> Result<()> {
    numbers.iter().try_for_each(|&(name, value)| {
        let allowed = value >= 0.0 && value.is_finite();
        check(optimizer, name, value, allowed, "a finite number, at least 0")
    })
}

/// Refuses numbers that are infinite or none.
pub(crate) fn finite(optimizer: &'static str, numbers: &[(&str, f64)]) -> Result<()> {
    numbers
        .iter()
        .try_for_each(|&(name, value)| check(optimizer, name, value, value.is_finite(), "a finite number"))
}

/// Refuses betas outside of `[0, 1)`.
pub(crate) fn check_betas(optimizer: &'static str, betas: (f64, f64)) -> Result<()> {
    [("betas.0", betas.0), ("betas.1", betas.1)].into_iter().try_for_each(|(name, beta)| {
        check(optimizer, name, beta, (0.0..1.0).contains(&beta), "at least 0 and below 1")
    })
}
