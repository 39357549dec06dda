//! Which module a call was of: `nn.Module: Linear_0`, numbered per class as they first appear.

use super::record::{EventKind, NONE, Names, Record};
use crate::names;
use std::collections::HashMap;

/// What is the same for all calls of one module.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    /// The number that its calls gave.
    Given(u64),
    /// Modules without a state of their own are told apart by where they are called: the
    /// caller's number, and the how-many-eth call of the class in it.
    Place(u32, u32),
}

/// Names and numbers the calls of modules that began by `end`. `records` are in order, with their
/// parents.
pub(super) fn number(records: &mut [Record], names: &mut Names, modules: &mut Modules, end: u64) {
    if !records.iter().any(|record| record.kind == EventKind::Module) {
        return;
    }
    // The innermost module's call that each event lies in.
    let mut within = vec![NONE; records.len()];
    for i in 0..records.len() {
        let outer = within.get(records[i].parent as usize).copied().unwrap_or(NONE);
        within[i] = if records[i].kind == EventKind::Module { i as u32 } else { outer };
        if records[i].kind != EventKind::Module {
            continue;
        }
        let caller = records.get(outer as usize).map(|call| (call.id, call.module));
        let record = &mut records[i];
        let module = modules.find(record, caller, names);
        if record.end >= end {
            modules.open.insert(record.id, module.clone());
        }
        (record.module, record.name) = (module.number, names.text(&module.name, false));
        record.outer_module = outer;
        record.sequence = u64::MAX;
    }
    modules.calls.retain(|(outer, _), _| outer.is_none_or(|call| modules.open.contains_key(&call)));
}

/// The modules that were called so far.
#[derive(Default)]
pub(super) struct Modules {
    known: HashMap<(String, Identity), Module>,
    /// How many modules there are of each class.
    classes: HashMap<String, u32>,
    /// How many calls of each class were made in one call.
    calls: HashMap<(Option<u64>, String), u32>,
    /// Calls that go on in the next piece of the recording.
    open: HashMap<u64, Module>,
}

#[derive(Clone)]
struct Module {
    number: u32,
    name: String,
}

impl Modules {
    /// The module that `record` is a call of, made in a call of `caller`: its id and module.
    fn find(&mut self, record: &Record, caller: Option<(u64, u32)>, names: &Names) -> Module {
        if record.before
            && let Some(module) = self.open.get(&record.id)
        {
            return module.clone();
        }
        let class = names.get(record.name);
        let identity = match record.sequence {
            0 | u64::MAX => {
                let calls = self.calls.entry((caller.map(|(id, _)| id), class.to_owned())).or_default();
                *calls += 1;
                Identity::Place(caller.map_or(NONE, |(_, module)| module), *calls - 1)
            }
            instance => Identity::Given(instance),
        };
        let number = self.known.len() as u32;
        let module = self.known.entry((class.to_owned(), identity)).or_insert_with(|| {
            let of_class = self.classes.entry(class.to_owned()).or_default();
            *of_class += 1;
            Module { number, name: format!("{}{class}_{}", names::MODULE, *of_class - 1) }
        });
        module.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_numbered_per_class_as_they_appear() {
        let mut names = Names::default();
        let [linear, relu, sequential] =
            ["Linear", "Relu", "Sequential"].map(|class| names.text(class, false));
        let call = |class, sequence, parent| Record {
            sequence,
            parent,
            ..Record::new(EventKind::Module, class, 0, 0, 0)
        };
        let once = [
            call(sequential, 50, NONE),
            call(linear, 51, 0),
            call(relu, 0, 0),
            Record { parent: 2, ..Record::new(EventKind::Operator, relu, 0, 0, 0) },
            call(linear, 52, 0),
            call(relu, 0, 0),
        ];
        // Twice: the second forward pass is of the same modules.
        let mut records = once.to_vec();
        records.extend(once.map(|record| Record {
            parent: if record.parent == NONE { NONE } else { record.parent + 6 },
            ..record
        }));
        (0..).zip(&mut records).for_each(|(id, record)| record.id = id);
        number(&mut records, &mut names, &mut Modules::default(), 1);
        let shown: Vec<&str> = records.iter().map(|record| names.get(record.name)).collect();
        let first = [
            "nn.Module: Sequential_0",
            "nn.Module: Linear_0",
            "nn.Module: Relu_0",
            "Relu",
            "nn.Module: Linear_1",
            "nn.Module: Relu_1",
        ];
        assert_eq!(shown, [first, first].concat());
        assert_eq!((records[5].outer_module, records[0].outer_module), (0, NONE));
        assert_eq!(records[4].module, records[10].module);
    }
}
