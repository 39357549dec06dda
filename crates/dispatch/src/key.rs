//! Dispatch keys: the stops a call makes on its way to a kernel.

use std::cell::Cell;
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
        self.without(EXCLUDED.get())
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

thread_local! {
    static EXCLUDED: Cell<KeySet> = const { Cell::new(KeySet::EMPTY) };
}

/// The keys that calls on this thread skip.
#[inline]
pub fn excluded() -> KeySet {
    EXCLUDED.get()
}

/// Hides `keys` from calls on this thread until the guard drops. Guards end in the reverse
/// order of their making, as they do at the end of a block.
#[inline]
pub fn exclude(keys: KeySet) -> ThreadKeys {
    set_excluded(EXCLUDED.get() | keys)
}

/// Shows `keys` again to calls on this thread until the guard drops.
#[inline]
pub fn include(keys: KeySet) -> ThreadKeys {
    set_excluded(EXCLUDED.get().without(keys))
}

#[inline]
fn set_excluded(keys: KeySet) -> ThreadKeys {
    ThreadKeys { before: EXCLUDED.replace(keys), _this_thread: std::marker::PhantomData }
}

/// Guard of [`exclude`] and [`include`](include()): restores what the thread skipped before.
#[must_use = "keys are excluded or included only while the guard lives"]
pub struct ThreadKeys {
    before: KeySet,
    /// The guard restores the thread it was made on, so it must drop there.
    _this_thread: std::marker::PhantomData<*const ()>,
}

impl Drop for ThreadKeys {
    #[inline]
    fn drop(&mut self) {
        EXCLUDED.set(self.before);
    }
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
}
