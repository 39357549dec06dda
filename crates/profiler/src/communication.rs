//! What processes exchange: of one call, and in which groups.

use cresset_dispatch::group;
use serde_json::json;

/// What processes exchanged in a call, and which they were.
///
/// ```
/// use cresset_dispatch::observe::{self, Call, Kind, Name};
/// use cresset_profiler::Profiler;
///
/// struct Reduced;
/// impl Call for Reduced {
///     fn name(&self) -> Name<'_> {
///         Name::Static("record_param_comms")
///     }
///     fn kind(&self) -> Kind {
///         Kind::Communication
///     }
///     fn communication(&self) -> Option<observe::Communication<'_>> {
///         Some(observe::Communication {
///             collective: "allreduce",
///             elements_in: 8,
///             elements_out: 8,
///             dtype: "f32",
///             group: "world",
///             ranks: &[0, 1],
///             rank: 1,
///             source: None,
///             target: None,
///             sequence: 0,
///         })
///     }
/// }
/// let (_, profiler) = Profiler::builder().run(|_| drop(observe::span(&Reduced)))?;
/// let exchanged = profiler.events()?.next().unwrap().communication().unwrap();
/// assert_eq!((&*exchanged.collective, exchanged.elements_in, exchanged.ranks), ("allreduce", 8, vec![0, 1]));
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Communication {
    /// What was done, by torch's name, e.g. `allreduce`.
    pub collective: String,
    /// Elements that this process gave.
    pub elements_in: u64,
    /// Elements that it got.
    pub elements_out: u64,
    /// Short name of their type, e.g. `f32`.
    pub dtype: String,
    /// The name of the group.
    pub group: String,
    /// All ranks of the group.
    pub ranks: Vec<u32>,
    /// Which of them this process was.
    pub rank: u32,
    /// Of a message between two, who sent it.
    pub source: Option<u32>,
    /// Of a message between two, who received it.
    pub target: Option<u32>,
    /// How many calls the group had made before.
    pub sequence: u64,
}

/// The groups that this process is in, as the head of a trace tells them; `None` if it is in none.
pub(crate) fn distributed_info() -> Option<String> {
    let groups = group::all();
    let world = groups.first()?;
    let listed: Vec<_> = groups
        .iter()
        .enumerate()
        .map(|(number, group)| {
            json!({
                "pg_name": number.to_string(),
                "pg_desc": group.name,
                "backend_config": group.backend,
                "pg_size": group.ranks.len(),
                "ranks": group.ranks,
            })
        })
        .collect();
    let info = json!({
        "backend": world.backend,
        "rank": world.rank,
        "world_size": world.ranks.len(),
        "pg_count": groups.len(),
        "pg_config": listed,
    });
    Some(info.to_string())
}
