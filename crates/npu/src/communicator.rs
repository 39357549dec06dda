//! Groups of devices that communicate: how ranks find each other, and what each of them owns.
//!
//! A collective fails on a stream that nobody waits for: other streams go on after it, with whatever it left behind.
//! So whoever waits for a stream of the device is told ([`check_all`]).

use crate::device;
use crate::status::{self, AclError, AclResult, check_collective};
use crate::stream::Stream;
use crate::sys::{Collectives, loaded, text_of};
use cresset_acl::collective::{config, result};
use cresset_acl::structure::{self, CommunicatorConfig, CommunicatorConfigHead};
use cresset_acl::types::c_char;
use cresset_tensor::{Cause, Device, Error, Result};
use parking_lot::Mutex;
use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

/// The functions for communication, or which library of the vendor's is missing.
pub(crate) fn functions() -> Result<&'static Collectives> {
    loaded().collectives.as_ref().map_err(|error| Error::from(error.clone()))
}

/// What ranks need to know to find each other. One of them makes it, and hands its bytes to all others.
///
/// ```
/// # use cresset_npu::{Library, RootInfo, device, init};
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let root = RootInfo::new(device(0))?;
/// assert_eq!(RootInfo::from_bytes(root.as_bytes())?.as_bytes(), root.as_bytes());
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct RootInfo(Box<structure::RootInfo>);

/// Bytes of a [`RootInfo`].
const ROOT_BYTES: usize = size_of::<structure::RootInfo>();

impl RootInfo {
    /// Information for one group, made on its first rank.
    ///
    /// # Errors
    /// If there is no such device, or no library for communication.
    pub fn new(device: Device) -> Result<RootInfo> {
        crate::check_device(device)?;
        let functions = functions()?;
        device::bind(device.index)?;
        let mut root = Box::new(structure::RootInfo { bytes: [0; ROOT_BYTES] });
        // SAFETY: the result has a place.
        check_collective("HcclGetRootInfo", unsafe { (functions.HcclGetRootInfo)(&mut *root) })?;
        Ok(RootInfo(root))
    }

    /// The bytes to hand to other ranks.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// What another rank handed over.
    ///
    /// # Errors
    /// If there are not as many bytes as there should be.
    pub fn from_bytes(bytes: &[u8]) -> Result<RootInfo> {
        let Ok(bytes) = <[u8; ROOT_BYTES]>::try_from(bytes) else {
            let text = format_args!("root information of {} bytes, expected {ROOT_BYTES}", bytes.len());
            return Err(Error::new(Cause::Argument, "", text));
        };
        Ok(RootInfo(Box::new(structure::RootInfo { bytes })))
    }
}

impl fmt::Debug for RootInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootInfo").finish_non_exhaustive()
    }
}

/// One rank's end of a group of devices. What they do together runs on a stream of its own, so that it goes on
/// beside what the device computes; see the methods that return [`Queued`](crate::Queued).
///
/// ```
/// # use cresset_npu::{Communicator, Library, Reduction, RootInfo, device, init};
/// # use cresset_tensor::Tensor;
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let alone = Communicator::join(device(0), &RootInfo::new(device(0))?, 0, 1, "alone")?;
/// let x = Tensor::new([1.0f32, 2.0])?.to(device(0))?;
/// alone.all_reduce(&x, Reduction::Sum)?.wait()?;
/// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub struct Communicator {
    joined: Arc<Joined>,
    rank: u32,
    size: u32,
    name: String,
}

/// What the library holds of a group.
struct Joined {
    raw: *mut c_void,
    stream: Stream,
    /// Why the group cannot be used any more.
    failure: OnceLock<AclError>,
}

// SAFETY: the library's handle means the same on every thread that works on its device.
unsafe impl Send for Joined {}
// SAFETY: as above; the library queues collectives under a lock of its own.
unsafe impl Sync for Joined {}

/// The groups in use, by device.
static JOINED: Mutex<Vec<(u8, Weak<Joined>)>> = Mutex::new(Vec::new());
static ANY: AtomicBool = AtomicBool::new(false);

/// Fails if a collective of a group that `device` is in did.
#[inline]
pub(crate) fn check_all(device: u8) -> AclResult {
    if ANY.load(Relaxed) { check_each(device) } else { Ok(()) }
}

#[cold]
fn check_each(device: u8) -> AclResult {
    let groups: Vec<Arc<Joined>> = {
        let mut joined = JOINED.lock();
        joined.retain(|(_, group)| group.strong_count() > 0);
        joined.iter().filter(|(at, _)| *at == device).filter_map(|(_, group)| group.upgrade()).collect()
    };
    groups.iter().try_for_each(|group| group.check())
}

impl Joined {
    /// The stream's words on what failed name the rank; the group itself knows a code only.
    fn check(&self) -> AclResult {
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        let Ok(functions) = functions() else { return Ok(()) };
        let mut error = result::SUCCESS;
        // SAFETY: the handle is alive, and the result has a place.
        let code = unsafe { (functions.HcclGetCommAsyncError)(self.raw, &mut error) };
        check_collective("HcclGetCommAsyncError", code)?;
        if error == result::SUCCESS {
            return Ok(());
        }
        let failure = match self.stream.finish_alone() {
            Err(failure) => failure,
            Ok(()) => AclError {
                function: "HcclGetCommAsyncError",
                code: error,
                name: result::name(error),
                // SAFETY: the library's texts stay.
                message: unsafe { text_of((functions.HcclGetErrorString)(error)) },
                launched_by: None,
            },
        };
        Err(self.failure.get_or_init(|| failure).clone())
    }
}

impl Communicator {
    /// Joins a group of `size` as its `rank`, and waits for all others. The group's `name` stands in device records.
    ///
    /// # Errors
    /// If there is no such device, no library for communication, or a rank does not come in time: the vendor's
    /// `HCCL_CONNECT_TIMEOUT` says in how many seconds.
    pub fn join(device: Device, root: &RootInfo, rank: u32, size: u32, name: &str) -> Result<Communicator> {
        crate::check_device(device)?;
        let functions = functions()?;
        let stream = Stream::new(device)?;
        device::bind(device.index)?;
        let (config, mut raw) = (configuration(name)?, ptr::null_mut());
        // SAFETY: both structures are whole, and the result has a place.
        let code =
            unsafe { (functions.HcclCommInitRootInfoConfig)(size, &*root.0, rank, &*config, &mut raw) };
        check_collective("HcclCommInitRootInfoConfig", code)?;
        let joined = Arc::new(Joined { raw, stream, failure: OnceLock::new() });
        JOINED.lock().push((device.index, Arc::downgrade(&joined)));
        ANY.store(true, Relaxed);
        Ok(Communicator { joined, rank, size, name: name.to_owned() })
    }

    /// Which rank of the group this is.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many ranks the group has.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The name of the group.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device of this rank.
    pub fn device(&self) -> Device {
        self.joined.stream.device()
    }

    /// The stream that communication runs on.
    pub fn stream(&self) -> &Stream {
        &self.joined.stream
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.joined.raw
    }

    /// Fails if a collective of the group did, also on a stream that nobody has waited for yet.
    ///
    /// # Errors
    /// What failed, in the library's words.
    pub fn check(&self) -> Result<()> {
        device::bind(self.joined.stream.device_index())?;
        Ok(self.joined.check()?)
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Communicator({}: rank {} of {}, {})", self.name, self.rank, self.size, self.device())
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let device = self.stream.device_index();
        if device::is_gone(device) {
            return;
        }
        // What is queued must be done before the group is left.
        let done = self.stream.finish_alone();
        if self.failure.get().is_none() {
            status::keep(done);
        }
        status::keep(device::bind(device));
        if let Ok(functions) = functions() {
            // SAFETY: made by `join`, destroyed once.
            status::keep(check_collective("HcclCommDestroy", unsafe {
                (functions.HcclCommDestroy)(self.raw)
            }));
        }
    }
}

/// What the library is told of a group: its name.
fn configuration(name: &str) -> Result<Box<CommunicatorConfig>> {
    const MOST: usize = 127;
    if name.is_empty() || name.len() > MOST || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        let text =
            format_args!("{name:?} cannot name a group, expected 1 to {MOST} visible ASCII characters");
        return Err(Error::new(Cause::Argument, "", text));
    }
    let mut field: [c_char; 128] = [0; 128];
    field.iter_mut().zip(name.bytes()).for_each(|(place, byte)| *place = byte as c_char);
    Ok(Box::new(CommunicatorConfig {
        head: head(),
        buffer_megabytes: config::UNSET,
        deterministic: config::UNSET,
        name: field,
        description: [0; 128],
        expansion_mode: config::UNSET,
        traffic_class: config::UNSET,
        service_level: config::UNSET,
    }))
}

/// Size, magic number and version, as [`CommunicatorConfigHead`] lays them out.
fn head() -> [u8; size_of::<CommunicatorConfigHead>()] {
    let mut head = [0; size_of::<CommunicatorConfigHead>()];
    head[..8].copy_from_slice(&config::BYTES.to_ne_bytes());
    head[8..12].copy_from_slice(&config::MAGIC.to_ne_bytes());
    head[12..16].copy_from_slice(&config::VERSION.to_ne_bytes());
    head
}
