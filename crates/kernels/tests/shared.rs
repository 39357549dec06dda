//! Shared ownership as its users see it: a value goes once, with its last owner.

use cresset_kernels::Shared;
use std::sync::Arc;

/// How often threads meet; Miri tries an order of its own each time, and takes its time.
const MEETINGS: usize = if cfg!(miri) { 20 } else { 500 };

#[test]
fn the_value_goes_with_its_last_owner() {
    let witness = Arc::new(());
    let mut one = Shared::new((witness.clone(), 7));
    let two = one.clone();
    assert!(Shared::ptr_eq(&one, &two) && Shared::count(&one) == 2 && two.1 == 7);
    assert!(Shared::get_mut(&mut one).is_none());
    drop(two);
    Shared::get_mut(&mut one).expect("only one owner is left").1 = 8;
    assert_eq!((one.1, Arc::strong_count(&witness)), (8, 2));
    drop(one);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn a_watcher_owns_nothing_and_finds_the_value_while_someone_does() {
    let witness = Arc::new(());
    let mut one = Shared::new(witness.clone());
    let (watcher, other) = (Shared::watch(&one), Shared::watch(&one));
    assert!(watcher.owner().is_some_and(|owner| Shared::ptr_eq(&owner, &one)));
    assert!(Shared::get_mut(&mut one).is_none(), "a watcher could make an owner meanwhile");
    drop(one);
    assert_eq!(Arc::strong_count(&witness), 1);
    assert!(watcher.owner().is_none());
    drop(watcher);
    assert!(other.owner().is_none());
}

#[test]
fn watchers_and_owners_on_two_threads_drop_the_value_once() {
    let witness = Arc::new(());
    for _ in 0..MEETINGS {
        let shared = Shared::new(witness.clone());
        let watcher = Shared::watch(&shared);
        std::thread::scope(|scope| {
            scope.spawn(move || drop(watcher.owner()));
            drop(shared);
        });
    }
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn owners_on_many_threads_drop_the_value_once() {
    let witness = Arc::new(());
    for _ in 0..MEETINGS {
        let shared = Shared::new(witness.clone());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let mine = shared.clone();
                scope.spawn(move || drop(mine.clone()));
            }
            drop(shared);
        });
    }
    assert_eq!(Arc::strong_count(&witness), 1);
}
