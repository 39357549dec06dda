//! Dispatch keys: the stops a call makes on its way to a kernel.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::BitOr;
use std::sync::OnceLock;

/// One stop: a backend, or a layer above all backends.
///
/// The host and the data-less backend are known here; every other backend claims a
/// slot by name when its crate is initialised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u8);

/// The names of backends that claimed a slot; the host and `meta` come before them.
static CLAIMED: [OnceLock<&'static str>; Key::BACKENDS - 2] = [const { OnceLock::new() }; Key::BACKENDS - 2];

impl Key {
    /// Host kernels.
    pub const CPU: Key = Key(0);
    /// Shapes and dtypes only, no data.
    pub const META: Key = Key(1);
    /// Records the backward graph, then lets the call go on to its backend.
    pub const AUTOGRAD: Key = Key(8);
    /// Follows views and changes in place. Where it is excluded, in inference mode, new tensors
    /// stay outside every graph.
    pub const CHANGES: Key = Key(9);
    /// Says which derivative a call belongs to. Excluded inside of operators that have one themselves.
    pub const LINKS: Key = Key(12);
    /// Casts what some operators are given. No tensor carries it: it applies to the calls of a thread,
    /// which skips it until it is [included](include()).
    pub const AUTOCAST: Key = Key(10);
    /// Looks at what operators give. No tensor carries it: as with [`AUTOCAST`](Key::AUTOCAST), a thread
    /// skips it until it is [included](include()).
    pub const RESULTS: Key = Key(11);
    /// How many backends have a kernel slot.
    pub const BACKENDS: usize = 8;

    /// The key of the backend called `name`, taking a free slot the first time.
    /// `None` when all slots are taken by other names.
    pub fn claim(name: &'static str) -> Option<Key> {
        Key::find(name).or_else(|| {
            let slot = CLAIMED.iter().position(|slot| *slot.get_or_init(|| name) == name)?;
            Some(Key(slot as u8 + 2))
        })
    }

    /// The key of the backend called `name`, if there is one.
    pub fn find(name: &str) -> Option<Key> {
        Key::backends().find(|key| key.name() == name)
    }

    /// Every backend there is, the host first.
    pub fn backends() -> impl Iterator<Item = Key> {
        let claimed = CLAIMED.iter().take_while(|slot| slot.get().is_some()).count();
        (0..2 + claimed as u8).map(Key)
    }

    /// What the key is called in errors and device names.
    pub fn name(self) -> &'static str {
        match self {
            Key::CPU => "cpu",
            Key::META => "meta",
            Key::AUTOGRAD => "autograd",
            Key::CHANGES => "changes",
            Key::LINKS => "links",
            Key::AUTOCAST => "autocast",
            Key::RESULTS => "results",
            Key(claimed) => {
                CLAIMED.get(claimed as usize - 2).and_then(|slot| slot.get()).unwrap_or(&"unclaimed")
            }
        }
    }

    /// Whether the key stands for devices, not for a layer above them.
    pub fn is_backend(self) -> bool {
        usize::from(self.0) < Key::BACKENDS
    }

    /// The slot a backend has in a [`Table`](crate::Table).
    #[inline]
    pub(crate) fn slot(self) -> usize {
        self.0 as usize % Key::BACKENDS
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of [`Key`]s. Each tensor carries one; a call works on their union.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct KeySet(u16);

impl KeySet {
    /// No keys.
    pub const EMPTY: KeySet = KeySet(0);
    /// The layer that records the backward graph.
    pub const AUTOGRAD: KeySet = KeySet::of(Key::AUTOGRAD);
    /// The layer that follows views and changes in place.
    pub const CHANGES: KeySet = KeySet::of(Key::CHANGES);
    /// The layer that says which derivative a call belongs to.
    pub const LINKS: KeySet = KeySet::of(Key::LINKS);
    /// The layer that casts what operators are given.
    pub const AUTOCAST: KeySet = KeySet::of(Key::AUTOCAST);
    /// The layer that looks at what operators give.
    pub const RESULTS: KeySet = KeySet::of(Key::RESULTS);
    /// What a thread skips from the start.
    const UNLESS_INCLUDED: KeySet = KeySet(KeySet::AUTOCAST.0 | KeySet::RESULTS.0);
    const BACKENDS: u16 = (1 << Key::BACKENDS) - 1;

    /// The set holding only `key`.
    #[inline]
    pub const fn of(key: Key) -> Self {
        KeySet(1 << key.0)
    }

    /// Whether `key` is in the set.
    #[inline]
    pub const fn contains(self, key: Key) -> bool {
        self.0 & (1 << key.0) != 0
    }

    /// The set without `keys`.
    #[inline]
    pub const fn without(self, keys: KeySet) -> Self {
        KeySet(self.0 & !keys.0)
    }

    /// The backend that serves the set: the host if it names none.
    ///
    /// # Errors
    /// The two first backends of a set that names several.
    #[inline]
    pub fn backend(self) -> Result<Key, [Key; 2]> {
        let backends = self.0 & KeySet::BACKENDS;
        let others = backends & backends.wrapping_sub(1);
        // Bit 8 stands for "no backend" and wraps to slot 0, the host.
        let first = Key((backends | 1 << Key::BACKENDS).trailing_zeros() as u8 % Key::BACKENDS as u8);
        if others == 0 { Ok(first) } else { Err([first, Key(others.trailing_zeros() as u8)]) }
    }

    /// The set as it applies on this thread, [`exclude`]d keys removed.
    #[inline]
    pub fn here(self) -> Self {
        self.without(excluded())
    }
}

impl BitOr for KeySet {
    type Output = KeySet;
    #[inline]
    fn bitor(self, other: KeySet) -> KeySet {
        KeySet(self.0 | other.0)
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries((0..16).map(Key).filter(|key| self.contains(*key))).finish()
    }
}

/// What a thread skips, and how many guards say so.
#[derive(Clone, Copy)]
struct State {
    excluded: KeySet,
    /// How many guards were made and are still waited for.
    depth: u32,
    /// Whether a guard was dropped before a younger one.
    early: bool,
}

thread_local! {
    static STATE: Cell<State> =
        const { Cell::new(State { excluded: KeySet::UNLESS_INCLUDED, depth: 0, early: false }) };
    /// Guards that were dropped before a younger one: their depth, and what they restore.
    static EARLY: RefCell<Vec<(u32, KeySet)>> = const { RefCell::new(Vec::new()) };
}

/// The keys that calls on this thread skip.
#[inline]
pub fn excluded() -> KeySet {
    STATE.get().excluded
}

/// Hides `keys` from calls on this thread until the guard drops.
///
/// Guards may be dropped in any order: the youngest that is left decides, and when all are
/// gone the thread is as it was before the first.
#[inline]
pub fn exclude(keys: KeySet) -> ThreadKeys {
    set_excluded(excluded() | keys)
}

/// Shows `keys` again to calls on this thread until the guard drops.
#[inline]
pub fn include(keys: KeySet) -> ThreadKeys {
    set_excluded(excluded().without(keys))
}

#[inline]
fn set_excluded(excluded: KeySet) -> ThreadKeys {
    let State { excluded: before, depth, early } = STATE.get();
    let depth = depth + 1;
    STATE.set(State { excluded, depth, early });
    ThreadKeys { before, depth, _this_thread: std::marker::PhantomData }
}

/// Guard of [`exclude`] and [`include`](include()): restores what the thread skipped before.
#[must_use = "keys are excluded or included only while the guard lives"]
pub struct ThreadKeys {
    before: KeySet,
    /// How many guards there were with this one.
    depth: u32,
    /// The guard restores the thread it was made on, so it must drop there.
    _this_thread: std::marker::PhantomData<*const ()>,
}

impl Drop for ThreadKeys {
    #[inline]
    fn drop(&mut self) {
        let state = STATE.get();
        if state.depth == self.depth && !state.early {
            STATE.set(State { excluded: self.before, depth: self.depth - 1, early: false });
        } else {
            end_in_disorder(self.depth, self.before);
        }
    }
}

/// Ends a guard while a younger one lives, or one that an older one waits for.
#[cold]
fn end_in_disorder(depth: u32, before: KeySet) {
    // Guards that drop when the thread itself ends have nothing left to restore.
    let _ = EARLY.try_with(|early| {
        let mut early = early.borrow_mut();
        early.push((depth, before));
        let mut state = STATE.get();
        while let Some(at) = early.iter().position(|(depth, _)| *depth == state.depth) {
            let (depth, excluded) = early.swap_remove(at);
            state = State { excluded, depth: depth - 1, early: true };
        }
        STATE.set(State { early: !early.is_empty(), ..state });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_names_its_backend_or_both_of_two() {
        let npu = Key::claim("key-test-device").expect("a slot is free");
        assert_eq!(KeySet::EMPTY.backend(), Ok(Key::CPU));
        assert_eq!(KeySet::AUTOGRAD.backend(), Ok(Key::CPU));
        assert_eq!((KeySet::of(npu) | KeySet::AUTOGRAD).backend(), Ok(npu));
        assert_eq!((KeySet::of(npu) | KeySet::of(Key::CPU)).backend(), Err([Key::CPU, npu]));
    }

    #[test]
    fn a_name_claims_one_slot_for_good() {
        let first = Key::claim("key-test-device").expect("a slot is free");
        assert_eq!(Key::claim("key-test-device"), Some(first));
        assert_eq!(Key::find("key-test-device"), Some(first));
        assert_eq!(first.name(), "key-test-device");
        assert_eq!(Key::find("nothing"), None);
        assert!(Key::backends().any(|key| key == first));
    }

    #[test]
    fn exclusion_nests_and_is_undone_by_its_guard() {
        let keys = KeySet::AUTOGRAD | KeySet::of(Key::CPU);
        let outer = exclude(KeySet::AUTOGRAD);
        assert!(!keys.here().contains(Key::AUTOGRAD));
        {
            let _inner = include(KeySet::AUTOGRAD);
            assert!(keys.here().contains(Key::AUTOGRAD));
        }
        assert!(!keys.here().contains(Key::AUTOGRAD));
        drop(outer);
        assert!(keys.here().contains(Key::AUTOGRAD));
    }

    #[test]
    fn guards_may_end_in_any_order() {
        let skipped = || excluded().contains(Key::AUTOGRAD);
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut guards = [
                Some(exclude(KeySet::AUTOGRAD)),
                Some(include(KeySet::AUTOGRAD)),
                Some(exclude(KeySet::AUTOGRAD)),
            ];
            for ended in order {
                guards[ended] = None;
                let youngest = guards.iter().rposition(Option::is_some);
                assert_eq!(skipped(), youngest.is_some_and(|guard| guard != 1), "{order:?}");
            }
        }
    }
}
