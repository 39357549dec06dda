//! The public signatures of operators: several may share a name, and the arguments tell which one
//! a call is of. Only asked for by those who watch; calls never look here.

use cresset_dispatch::observe::{Argument, Call};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::LazyLock;

/// One signature per line, e.g. `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) ->
/// Tensor`; those of one name stand together.
const LINES: &str = include_str!("schemas.txt");

static BY_NAME: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut schemas = HashMap::<_, Vec<_>>::new();
    for line in LINES.lines() {
        let name = line.split(['.', '(']).next().unwrap_or(line);
        schemas.entry(name).or_default().push(line);
    }
    schemas
});

/// The signature of a call's operator that takes what it visits; empty if none does. Not generic:
/// there are as many kinds of calls as operators.
pub(crate) fn of(call: &dyn Call) -> &'static str {
    let Some(schemas) = BY_NAME.get(call.name().as_str()) else { return "" };
    let mut kinds = SmallVec::<[Kind; 8]>::new();
    call.arguments(&mut |argument| kinds.push(Kind::of(&argument)));
    schemas.iter().find(|schema| takes(schema, &kinds)).copied().unwrap_or("")
}

/// Whether a signature has as many parameters, each for what is given.
fn takes(schema: &str, given: &[Kind]) -> bool {
    let mut given = given.iter();
    parameters(schema).all(|parameter| given.next().is_some_and(|kind| kind.fits(parameter)))
        && given.next().is_none()
}

/// The types of the parameters.
fn parameters(schema: &str) -> impl Iterator<Item = &str> {
    let list = schema.split_once('(').zip(schema.rsplit_once(") -> "));
    let list = list.map_or("", |((head, _), (whole, _))| &whole[head.len() + 1..]);
    // Lists that parameters default to have commas too, but begin with a number.
    let parts = list.split(", ").filter(|part| part.starts_with(char::is_alphabetic));
    parts.filter_map(|part| part.split(' ').next())
}

/// What an argument is.
#[derive(Clone, Copy)]
enum Kind {
    Tensor,
    Tensors,
    Int,
    Float,
    Bool,
    Ints,
    Floats,
    Bools,
    Text,
    Device,
    None,
}

impl Kind {
    fn of(argument: &Argument<'_>) -> Kind {
        match argument {
            Argument::Tensor(_) => Kind::Tensor,
            Argument::Tensors(_) => Kind::Tensors,
            Argument::Int(_) => Kind::Int,
            Argument::Float(_) => Kind::Float,
            Argument::Bool(_) => Kind::Bool,
            Argument::Ints(_) => Kind::Ints,
            Argument::Floats(_) => Kind::Floats,
            Argument::Bools(_) => Kind::Bools,
            Argument::Text(_) => Kind::Text,
            Argument::Device(_) => Kind::Device,
            Argument::None => Kind::None,
        }
    }

    /// Whether a parameter of this type takes it.
    fn fits(self, parameter: &str) -> bool {
        let optional = parameter.ends_with('?');
        let name = parameter.trim_end_matches('?');
        let is_list_of = |element: &str| name.starts_with(element) && name.contains('[');
        match self {
            Kind::Tensor => name.starts_with("Tensor") && !name.contains('['),
            Kind::Tensors => is_list_of("Tensor"),
            // Types, layouts and memory formats are numbers to those who watch.
            Kind::Int => ["int", "SymInt", "Scalar", "ScalarType", "Layout", "MemoryFormat"].contains(&name),
            Kind::Float => ["float", "Scalar"].contains(&name),
            Kind::Bool => ["bool", "Scalar"].contains(&name),
            Kind::Ints => is_list_of("int") || is_list_of("SymInt"),
            Kind::Floats => is_list_of("float") || is_list_of("Scalar"),
            Kind::Bools => is_list_of("bool"),
            Kind::Text => name == "str",
            Kind::Device => name == "Device",
            Kind::None => optional,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cresset_dispatch::observe::{Name, TensorArgument};

    struct Given<'a>(&'static str, &'a [Argument<'a>]);

    impl Call for Given<'_> {
        fn name(&self) -> Name<'_> {
            Name::Static(self.0)
        }

        fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
            self.1.iter().for_each(|argument| visit(*argument));
        }
    }

    fn found(name: &'static str, arguments: &[Argument<'_>]) -> &'static str {
        of(&Given(name, arguments)).split('(').next().unwrap_or("")
    }

    #[test]
    fn arguments_tell_operators_of_one_name_apart() {
        let tensor = TensorArgument { shape: &[2], strides: &[1], dtype: "f32", source: None };
        let tensor = Argument::Tensor(tensor);
        let (int, float, none) = (Argument::Int(1), Argument::Float(0.5), Argument::None);
        assert_eq!(found("aten::add", &[tensor, tensor, int]), "aten::add.Tensor");
        assert_eq!(found("aten::pow", &[tensor, float]), "aten::pow.Tensor_Scalar");
        assert_eq!(found("aten::pow", &[float, tensor]), "aten::pow.Scalar");
        assert_eq!(found("aten::sum", &[tensor, none]), "aten::sum");
        let dims = [Argument::Ints(&[0, 1]), Argument::Bool(false)];
        assert_eq!(found("aten::sum", &[tensor, dims[0], dims[1], none]), "aten::sum.dim_IntList");
        assert_eq!(found("aten::add", &[tensor]), "");
        assert_eq!(found("mine::add", &[tensor]), "");
    }

    #[test]
    fn every_line_can_be_taken_apart() {
        for line in LINES.lines() {
            assert!(line.starts_with("aten::") && line.contains(") -> "), "{line}");
            let known = ["Tensor", "Scalar", "SymInt", "int", "float", "bool", "str", "Device"];
            let more = ["Layout", "MemoryFormat", "Generator"];
            let is_known = |kind: &str| known.iter().chain(&more).any(|name| kind.starts_with(name));
            assert!(parameters(line).all(is_known), "{line}");
        }
    }
}
