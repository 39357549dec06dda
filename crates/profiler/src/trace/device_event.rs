//! Views of what devices did.

use super::Trace;
use super::event::Event;
use super::work::DeviceWork;
use crate::names;
use cresset_dispatch::activity::{Activity, Work};
use std::borrow::Cow;
use std::fmt;

/// Something a device did.
///
/// ```
/// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
/// # use cresset_profiler::Profiler;
/// # npu();
/// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
/// let (_, profiler) = Profiler::builder().run(|_| body())?;
/// let kernel = profiler.trace()?.device_events().next().unwrap();
/// println!("{} on stream {}: {} ns", kernel.name(), kernel.stream(), kernel.duration());
/// # assert_eq!(kernel.duration(), 3000);
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct DeviceEvent<'a> {
    pub(super) trace: &'a Trace,
    pub(super) work: &'a DeviceWork,
}

impl<'a> DeviceEvent<'a> {
    /// What the device said about it.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let kernel = profiler.trace()?.device_events().next().unwrap();
    /// assert_eq!(kernel.activity().unit, "AI_CORE");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn activity(&self) -> &'a Activity {
        &self.work.activity
    }

    /// The name as in traces: a kernel's own, or torch's for copies and sets.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// assert!(profiler.trace()?.device_events().map(|work| work.name().to_owned()).eq(["Add"]));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn name(&self) -> &'a str {
        match self.work.activity.work {
            Work::Copy { direction } => names::copy(direction),
            Work::Set => names::SET,
            Work::Kernel | Work::Launch => &self.work.activity.name,
        }
    }

    /// The kind of device, e.g. `NPU`.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let kernel = profiler.trace()?.device_events().next().unwrap();
    /// assert_eq!(kernel.device_type(), "NPU");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn device_type(&self) -> Cow<'static, str> {
        names::device_type(self.work.activity.device.key)
    }

    /// The stream it ran on, counted from 1.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// assert!(profiler.trace()?.device_events().all(|work| work.stream() == 1));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn stream(&self) -> u32 {
        self.work.stream
    }

    /// How long it took, in nanoseconds.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let busy: u64 = profiler.trace()?.device_events().map(|work| work.duration()).sum();
    /// assert_eq!(busy, 3000);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn duration(&self) -> u64 {
        self.work.activity.end - self.work.activity.start
    }

    /// The call it was launched in.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let kernel = profiler.trace()?.device_events().next().unwrap();
    /// assert_eq!(kernel.call().unwrap().name(), "aten::add");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn call(&self) -> Option<Event<'a>> {
        Event::new(self.trace, self.work.call)
    }

    /// The library call that launched it.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let kernel = profiler.trace()?.device_events().next().unwrap();
    /// assert_eq!(kernel.launch().unwrap().name(), "aclnnAdd");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn launch(&self) -> Option<Event<'a>> {
        Event::new(self.trace, self.work.launch)
    }
}

impl fmt::Debug for DeviceEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.work.activity.fmt(f)
    }
}
