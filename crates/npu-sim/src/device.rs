//! Devices: memory, streams, and the context that all threads share.

use crate::config::CONFIG;
use crate::context::Context;
use crate::error::{Result, fail};
use crate::memory::Memory;
use crate::stream::Stream;
use cresset_acl::code;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Instant;

/// One simulated device.
pub(crate) struct Device {
    pub(crate) id: usize,
    pub(crate) memory: Memory,
    streams: Mutex<Vec<Weak<Stream>>>,
    primary: Mutex<Primary>,
    /// Devices whose memory this one may reach.
    peers: Mutex<BTreeSet<usize>>,
}

/// The context that `aclrtSetDevice` selects, and how often it did.
struct Primary {
    uses: usize,
    context: usize,
}

static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| (0..CONFIG.devices).map(Device::new).collect());

impl Device {
    fn new(id: usize) -> Device {
        Device {
            id,
            memory: Memory::new(CONFIG.memory),
            streams: Mutex::new(Vec::new()),
            primary: Mutex::new(Primary { uses: 0, context: 0 }),
            peers: Mutex::default(),
        }
    }

    /// All devices.
    pub(crate) fn all() -> &'static [Device] {
        &DEVICES
    }

    pub(crate) fn by_id(id: i32) -> Result<&'static Device> {
        let Some(device) = usize::try_from(id).ok().and_then(|id| DEVICES.get(id)) else {
            fail!(code::RT_INVALID_DEVICEID, "there is no device {id}: there are {}", DEVICES.len());
        };
        Ok(device)
    }

    /// The device whose memory an address is of.
    pub(crate) fn owner(address: usize) -> Option<&'static Device> {
        DEVICES.iter().find(|device| device.memory.owns(address))
    }

    /// Counts one more use; gives the handle of the shared context.
    pub(crate) fn open(&'static self) -> usize {
        let mut primary = self.primary.lock();
        if primary.uses == 0 {
            primary.context = Context::create(self);
        }
        primary.uses += 1;
        primary.context
    }

    /// Counts one use less; the last one finishes all work and ends the context.
    pub(crate) fn release(&self) -> Result {
        let mut primary = self.primary.lock();
        match primary.uses {
            0 => fail!(code::RT_CONTEXT_NULL, "device {} is not set", self.id),
            1 => Context::destroy(primary.context)?,
            _ => {}
        }
        primary.uses -= 1;
        Ok(())
    }

    /// Ends the shared context, however often it is in use.
    pub(crate) fn close(&self) -> Result {
        let mut primary = self.primary.lock();
        if primary.uses > 0 {
            primary.uses = 0;
            Context::destroy(primary.context)?;
        }
        Ok(())
    }

    /// Whether a context is the shared one, which only [`Device::release`] may end.
    pub(crate) fn is_primary(&self, context: usize) -> bool {
        let primary = self.primary.lock();
        primary.uses > 0 && primary.context == context
    }

    /// Whether the shared context is in use.
    pub(crate) fn is_open(&self) -> bool {
        self.primary.lock().uses > 0
    }

    /// Lets this device reach the memory of another.
    pub(crate) fn enable_peer(&self, peer: &Device) -> Result {
        if peer.id == self.id {
            fail!(code::RT_PARAM_INVALID, "device {} is no peer of itself", self.id);
        }
        self.peers.lock().insert(peer.id);
        Ok(())
    }

    pub(crate) fn disable_peer(&self, peer: &Device) -> Result {
        if !self.peers.lock().remove(&peer.id) {
            fail!(code::RT_PARAM_INVALID, "device {} did not reach device {}", self.id, peer.id);
        }
        Ok(())
    }

    /// Fails unless one of two devices may reach the other.
    pub(crate) fn expect_peers(&self, other: &Device) -> Result {
        if self.peers.lock().contains(&other.id) || other.peers.lock().contains(&self.id) {
            return Ok(());
        }
        fail!(
            code::RT_PARAM_INVALID,
            "a copy between devices {} and {} needs aclrtDeviceEnablePeerAccess first",
            self.id,
            other.id
        );
    }

    /// Gives up all work that waits.
    pub(crate) fn abort(&self) {
        let streams: Vec<_> = self.streams.lock().iter().filter_map(Weak::upgrade).collect();
        streams.iter().for_each(|stream| stream.abort(code::RT_DEVICE_TASK_ABORT));
    }

    /// How many streams there are.
    pub(crate) fn stream_count(&self) -> usize {
        self.streams.lock().iter().filter(|stream| stream.strong_count() > 0).count()
    }

    /// How many streams have work.
    pub(crate) fn busy_streams(&self) -> usize {
        let streams: Vec<_> = self.streams.lock().iter().filter_map(Weak::upgrade).collect();
        streams.iter().filter(|stream| !stream.is_complete()).count()
    }

    pub(crate) fn watch(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams.lock();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// Waits for all streams; fails with the first failure of any, and forgets the others.
    pub(crate) fn synchronize(&self, deadline: Option<Instant>) -> Result {
        let streams: Vec<_> = self.streams.lock().iter().filter_map(Weak::upgrade).collect();
        let results: Vec<Result> = streams.iter().map(|stream| stream.synchronize(deadline)).collect();
        results.into_iter().collect()
    }
}
