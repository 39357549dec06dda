//! The C types that signatures are written with.

pub use std::ffi::{c_char, c_void};

/// A status code of the runtime; see [`code`](crate::code).
pub type Status = i32;
/// An in-order queue of device work; null is the default stream of the current context.
pub type Stream = *mut c_void;
/// A point in a stream.
pub type Event = *mut c_void;
/// A device as one thread sees it.
pub type Context = *mut c_void;

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}

opaque! {
    /// Describes a tensor on the device (`aclTensor`).
    TensorHandle,
    /// Holds a number on the host (`aclScalar`).
    ScalarHandle,
    /// Holds integers on the host (`aclIntArray`).
    IntArrayHandle,
    /// Holds floats on the host (`aclFloatArray`).
    FloatArrayHandle,
    /// Holds truth values on the host (`aclBoolArray`).
    BoolArrayHandle,
    /// Owns descriptors of tensors (`aclTensorList`).
    TensorListHandle,
    /// Owns scalars (`aclScalarList`).
    ScalarListHandle,
    /// A planned operator call (`aclOpExecutor`).
    Executor,
}

/// Asks for memory to write activity records to: address, size, most records (0: any).
pub type BufferRequested = unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, most: *mut usize);
/// Gives back such memory, `valid` bytes of it filled.
pub type BufferCompleted = unsafe extern "C" fn(buffer: *mut u8, size: usize, valid: usize);
/// Hears of runtime calls; not used, so the signature stays open.
pub type ActivityCallback = *const c_void;

/// Runs on the host in the order of a stream, or hears of a failure.
pub type Callback = unsafe extern "C" fn(data: *mut c_void);
/// Hears that a device changes its state.
pub type DeviceCallback = unsafe extern "C" fn(device: i32, state: i32, data: *mut c_void);
/// Hears that a stream changes its state.
pub type StreamCallback = unsafe extern "C" fn(stream: Stream, state: i32, data: *mut c_void);

/// A group of ranks that communicate (`HcclComm`).
pub type Communicator = *mut c_void;

/// Runs one planned operator: the second function of every pair.
pub type RunOperator = unsafe extern "C" fn(
    workspace: *mut c_void,
    size: u64,
    executor: *mut Executor,
    stream: Stream,
) -> Status;

/// The version of a package of the toolkit (`aclCANNPackageVersion`): texts ended by a zero byte.
#[repr(C)]
pub struct PackageVersion {
    /// All of it, e.g. `8.1.RC1`.
    pub version: [c_char; 128],
    /// The major number.
    pub major: [c_char; 64],
    /// The minor number.
    pub minor: [c_char; 64],
    /// The release.
    pub release: [c_char; 64],
    /// The patch.
    pub patch: [c_char; 64],
    reserved: [c_char; 128],
}

impl PackageVersion {
    /// No version: empty texts.
    pub const NONE: PackageVersion = PackageVersion {
        version: [0; 128],
        major: [0; 64],
        minor: [0; 64],
        release: [0; 64],
        patch: [0; 64],
        reserved: [0; 128],
    };
}
