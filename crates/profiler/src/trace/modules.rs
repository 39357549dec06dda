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

/// Names and numbers the calls of modules. `records` are in order, with their parents.
pub(super) fn number(records: &mut [Record], names: &mut Names) {
    if !records.iter().any(|record| record.kind == EventKind::Module) {
        return;
    }
    let mut modules = Modules::default();
    // The innermost module's call that each event lies in.
    let mut within = vec![NONE; records.len()];
    for i in 0..records.len() {
        let outer = within.get(records[i].parent as usize).copied().unwrap_or(NONE);
        within[i] = if records[i].kind == EventKind::Module { i as u32 } else { outer };
        if records[i].kind != EventKind::Module {
            continue;
        }
        let caller = records.get(outer as usize).map_or(NONE, |call| call.module);
        let record = &mut records[i];
        (record.module, record.name) = modules.find(record, outer, caller, names);
        record.outer_module = outer;
        record.sequence = u64::MAX;
    }
}

#[derive(Default)]
struct Modules {
    known: HashMap<(u32, Identity), (u32, u32)>,
    /// How many modules there are of each class.
    classes: HashMap<u32, u32>,
    /// How many calls of each class were made in one call.
    calls: HashMap<(u32, u32), u32>,
}

impl Modules {
    /// The number and the full name of the module that `record` is a call of.
    fn find(&mut self, record: &Record, outer: u32, caller: u32, names: &mut Names) -> (u32, u32) {
        let class = record.name;
        let identity = match record.sequence {
            0 | u64::MAX => {
                let calls = self.calls.entry((outer, class)).or_default();
                *calls += 1;
                Identity::Place(caller, *calls - 1)
            }
            instance => Identity::Given(instance),
        };
        let next = self.known.len() as u32;
        *self.known.entry((class, identity)).or_insert_with(|| {
            let number = self.classes.entry(class).or_default();
            let name = format!("{}{}_{number}", names::MODULE, names.get(class));
            *number += 1;
            (next, names.text(&name, false))
        })
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
        number(&mut records, &mut names);
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
