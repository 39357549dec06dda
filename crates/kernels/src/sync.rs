//! What [`shared`](crate::shared) counts by; `tests/model.rs` puts loom's types in their place.

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering, fence};
