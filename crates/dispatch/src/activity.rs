//! What devices did, in their own time.
//!
//! A device that can tell registers a [`Source`]. Whoever wants to know starts all
//! sources, drains them as often as it likes, and stops them. Each [`Activity`] names the
//! call that launched it, which is all that is needed to join the two timelines.

use crate::Device;
use std::error::Error;
use std::sync::OnceLock;

/// Why a source could not do what it was asked.
pub type Failure = Box<dyn Error + Send + Sync>;

/// What kind of work an [`Activity`] was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A call into the device's library, on the host: its times are host times, its
    /// [`lane`](Activity::lane) is the OS thread.
    Launch,
    /// A kernel, on the device.
    Kernel,
    /// A copy of `bytes`.
    Copy {
        /// From where to where.
        direction: Direction,
    },
    /// `bytes` set to one value.
    Set,
}

/// From where to where a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Host to device.
    HostToDevice,
    /// Device to host.
    DeviceToHost,
    /// Within a device or between two.
    DeviceToDevice,
    /// Host to host, through the device's library.
    HostToHost,
}

/// One piece of work. Times are nanoseconds since 1970, on the host's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// What it was.
    pub work: Work,
    /// The device's own name for it, e.g. of the kernel or the library function.
    pub name: String,
    /// Which hardware unit ran it, as the device calls it; empty if unknown.
    pub unit: String,
    /// Where it ran, or which device a launch was for.
    pub device: Device,
    /// The stream it ran on; for a launch the OS thread that called.
    pub lane: u32,
    /// When it started.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The same for a launch and the work it launched; unique per launch, above 0.
    pub correlation: u64,
    /// The [`call`](crate::observe::current) it was launched in; 0 if none.
    pub call: u64,
    /// Bytes moved or set; 0 for kernels and launches.
    pub bytes: u64,
}

/// What a trace says about a device it has activities of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Which device.
    pub device: Device,
    /// What its library calls it. A simulated device says so here.
    pub name: String,
    /// Bytes of memory it has.
    pub memory: u64,
}

/// A device, or a family of devices, that can tell what it did.
pub trait Source: Sync {
    /// Begins to collect.
    fn start(&self) -> Result<(), Failure>;
    /// Waits for the devices and hands over what was collected since the last time.
    fn drain(&self, sink: &mut dyn FnMut(Activity)) -> Result<(), Failure>;
    /// Hands over what is known by now, without waiting for anything. Asked for time and again
    /// during a long recording, so that a source need not keep all of it; one that can tell
    /// nothing before the end says nothing.
    fn poll(&self, _sink: &mut dyn FnMut(Activity)) -> Result<(), Failure> {
        Ok(())
    }
    /// Ends collecting; what was not drained is lost.
    fn stop(&self) -> Result<(), Failure>;
    /// Visits the devices in use.
    fn devices(&self, visit: &mut dyn FnMut(Properties));
}

const SOURCES: usize = 6;
static REGISTERED: [OnceLock<&'static dyn Source>; SOURCES] = [const { OnceLock::new() }; SOURCES];

/// Who is told of new sources.
static WELCOME: OnceLock<fn(&'static dyn Source)> = OnceLock::new();

/// Makes a source known. Returns false when there is no room for one more.
pub fn register(source: &'static dyn Source) -> bool {
    let known = REGISTERED.iter().any(|slot| slot.set(source).is_ok());
    if let Some(welcome) = WELCOME.get().filter(|_| known) {
        welcome(source);
    }
    known
}

/// Has `welcome` called with every source that is registered from now on. The first caller is
/// heard, and nobody else: one profiler collects for all.
pub fn on_register(welcome: fn(&'static dyn Source)) {
    WELCOME.get_or_init(|| welcome);
}

/// The registered sources, in the order they came.
pub fn sources() -> impl Iterator<Item = &'static dyn Source> {
    REGISTERED.iter().map_while(|slot| slot.get().copied())
}
