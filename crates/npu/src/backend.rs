//! The NPU as a backend of tensors: memory, copies, waiting, random numbers.

use crate::pinned::Pinned;
use crate::{allocator, device, fallback, random, status, transfer};
use cresset_tensor::backend::{Backend, Buffer, Part, Random};
use cresset_tensor::{Device, DeviceMemory, RandomState, Result, Storage, Tensor};

/// All NPUs.
pub(crate) struct Npu;

impl Backend for Npu {
    fn device_count(&self) -> usize {
        device::device_count()
    }

    fn allocate(&self, device: Device, bytes: usize) -> Result<Box<dyn DeviceMemory>> {
        Ok(Box::new(allocator::of(device.index).allocate(bytes)?))
    }

    fn upload(&self, from: &[u8], to: &Storage, offset: usize) -> Result<()> {
        transfer::upload_to(from, Part { storage: to, offset, bytes: from.len() })
    }

    fn download(&self, from: &Storage, offset: usize, to: &mut [u8]) -> Result<()> {
        transfer::download_from(Part { storage: from, offset, bytes: to.len() }, to)
    }

    fn synchronize(&self, device: Device) -> Result<()> {
        device::synchronize(device.index)?;
        Ok(status::kept()?)
    }

    fn copy(&self, from: Part<'_>, to: Part<'_>, non_blocking: bool) -> Result<()> {
        transfer::copy(from, to, non_blocking)
    }

    fn pin(&self, bytes: usize) -> Result<Option<Buffer>> {
        Ok(Some(Buffer::foreign(Box::new(Pinned::new(bytes, device::current_index())?), bytes)))
    }

    fn random(&self, out: &Tensor, numbers: Random, state: RandomState) -> Result<bool> {
        random::fill(out, numbers, state).map(|()| true)
    }

    fn falls_back(&self, op: &'static str) -> bool {
        fallback::wanted(op)
    }
}
