//! The NPU as a backend of tensors: memory, copies, waiting.

use crate::allocator::{self, Block};
use crate::{device, memory, status, stream};
use cresset_tensor::backend::Backend;
use cresset_tensor::{Cause, Device, DeviceMemory, Error, Result, Storage};

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
        let (stream, address) = meet(to, offset, from.len())?;
        Ok(memory::upload(from, address, &stream)?)
    }

    fn download(&self, from: &Storage, offset: usize, to: &mut [u8]) -> Result<()> {
        let (stream, address) = meet(from, offset, to.len())?;
        memory::download(address, to, &stream)?;
        Ok(status::kept()?)
    }

    fn synchronize(&self, device: Device) -> Result<()> {
        device::synchronize(device.index)?;
        Ok(status::kept()?)
    }
}

/// The stream and the address of a copy of `bytes` to or from `storage`.
fn meet(storage: &Storage, offset: usize, bytes: usize) -> Result<(stream::Stream, usize)> {
    let block = storage
        .device_memory::<Block>()
        .filter(|_| offset.checked_add(bytes).is_some_and(|end| end <= storage.len()));
    let Some(block) = block else {
        let text = format_args!(
            "cannot copy {bytes} bytes at {offset} of a storage of {} bytes on {}",
            storage.len(),
            storage.device()
        );
        return Err(Error::new(Cause::Argument, "", text));
    };
    let stream = stream::current(storage.device().index)?;
    block.used_on(&stream);
    Ok((stream, block.address() + offset))
}
