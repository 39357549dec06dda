//! Functions that run before and after steps.

use crate::{HookId, StepHook};

/// The hooks of an optimizer.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) before: Vec<(HookId, StepHook)>,
    pub(crate) after: Vec<(HookId, StepHook)>,
    next: u64,
    removed: Vec<HookId>,
}

/// When a hook runs.
#[derive(Clone, Copy)]
pub(crate) enum When {
    Before,
    After,
}

impl Hooks {
    pub(crate) fn add(&mut self, when: When, hook: StepHook) -> HookId {
        let id = HookId(self.next);
        self.next += 1;
        self.of(when).push((id, hook));
        id
    }

    pub(crate) fn remove(&mut self, id: HookId) -> bool {
        let before = self.before.len() + self.after.len();
        self.before.retain(|(known, _)| *known != id);
        self.after.retain(|(known, _)| *known != id);
        // A hook that is running is not in its list.
        self.removed.push(id);
        before != self.before.len() + self.after.len()
    }

    fn of(&mut self, when: When) -> &mut Vec<(HookId, StepHook)> {
        match when {
            When::Before => &mut self.before,
            When::After => &mut self.after,
        }
    }

    /// Takes the hooks out, so that they may change the optimizer while they run.
    pub(crate) fn take(&mut self, when: When) -> Vec<(HookId, StepHook)> {
        self.removed.clear();
        std::mem::take(self.of(when))
    }

    /// Puts them back, before those that were added meanwhile.
    pub(crate) fn put_back(&mut self, when: When, mut hooks: Vec<(HookId, StepHook)>) {
        let removed = std::mem::take(&mut self.removed);
        hooks.retain(|(id, _)| !removed.contains(id));
        let added = std::mem::take(self.of(when));
        hooks.extend(added);
        *self.of(when) = hooks;
    }
}
