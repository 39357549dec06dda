//! Groups of processes that this one communicates in, so that traces can tell which rank they are of.

use std::sync::{Mutex, PoisonError};

/// A group, as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What it is called.
    pub name: String,
    /// What carries its data, e.g. `hccl`.
    pub backend: &'static str,
    /// Which rank this process is.
    pub rank: u32,
    /// All ranks.
    pub ranks: Vec<u32>,
}

static GROUPS: Mutex<(u64, Vec<(u64, Group)>)> = Mutex::new((0, Vec::new()));

/// Makes a group known until the guard drops.
#[must_use = "the group is known only while the guard lives"]
pub fn join(group: Group) -> Joined {
    let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    groups.0 += 1;
    let number = groups.0;
    groups.1.push((number, group));
    Joined(number)
}

/// The groups that this process is in, in the order it joined them.
pub fn all() -> Vec<Group> {
    let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    groups.1.iter().map(|(_, group)| group.clone()).collect()
}

/// Guard of [`join`].
#[derive(Debug)]
pub struct Joined(u64);

impl Drop for Joined {
    fn drop(&mut self) {
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        groups.1.retain(|(number, _)| *number != self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_known_while_someone_is_in_them() {
        let group = |name: &str| Group { name: name.to_owned(), backend: "test", rank: 1, ranks: vec![0, 1] };
        let (world, pair) = (join(group("world")), join(group("pair")));
        assert_eq!(all(), [group("world"), group("pair")]);
        drop(world);
        assert_eq!(all(), [group("pair")]);
        drop(pair);
        assert_eq!(all(), []);
    }
}
