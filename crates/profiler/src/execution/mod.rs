//! Execution traces: which operator was called with which tensors, in Chakra's format.
//!
//! Unlike a profile it has no times. Each call is a node with its arguments, results and
//! parent, and every tensor and storage has a number, so that a program can be replayed.

mod date;
mod node;
mod recorder;

pub use recorder::ExecutionTrace;

use crate::error::Result;

/// Something that is started and stopped with what a profiler records, such as an
/// [`ExecutionTrace`].
///
/// ```
/// use cresset_profiler::{Profiler, Result, WindowObserver};
/// struct Lamp;
/// impl WindowObserver for Lamp {
///     fn start(&mut self) -> Result<()> {
///         Ok(println!("recording"))
///     }
///     fn stop(&mut self) -> Result<()> {
///         Ok(println!("recorded"))
///     }
///     fn cleanup(&mut self) -> Result<()> {
///         Ok(())
///     }
/// }
/// Profiler::builder().execution_trace_observer(Lamp).run(|_| ())?;
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
pub trait WindowObserver: Send {
    /// Recording begins.
    ///
    /// # Errors
    /// Its own; the profiler goes on and returns it.
    fn start(&mut self) -> Result<()>;

    /// Recording ends, maybe to begin again.
    ///
    /// # Errors
    /// Its own; the profiler goes on and returns it.
    fn stop(&mut self) -> Result<()>;

    /// The profiler was stopped: there is nothing more to come.
    ///
    /// # Errors
    /// Its own; the profiler is stopped all the same and returns it.
    fn cleanup(&mut self) -> Result<()>;
}
