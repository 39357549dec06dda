//! Elements on their way between the host and devices.

use crate::backend::{self, Part};
use crate::{Cause, DType, Device, Error, Key, Layout, Result, Storage, Tensor, composite, shown};
use cresset_dispatch::observe::{self, Argument};
use cresset_dispatch::site;

impl Tensor {
    /// This tensor, whose elements lie without gaps, on another device.
    pub(crate) fn moved(&self, device: Device, non_blocking: bool) -> Result<Tensor> {
        let out = room(self, device, non_blocking)?;
        out.fill_from(self, non_blocking)?;
        Ok(out)
    }

    /// Overwrites the elements with those of `from`, of the same shape and type, on another device. Both lie
    /// without gaps in row-major order.
    pub(crate) fn fill_from(&self, from: &Tensor, non_blocking: bool) -> Result<()> {
        let _span = composite("aten::copy_", [self, from], |visit| visit(Argument::Bool(non_blocking)));
        if self.numel() == 0 {
            return Ok(());
        }
        let served = if self.device().is_cpu() { from.device() } else { self.device() };
        // Devices of two families meet on the host.
        if !self.device().is_cpu() && !from.device().is_cpu() && self.device().key != from.device().key {
            return self.fill_from(&from.moved(Device::CPU, false)?, non_blocking);
        }
        // Not every byte is a truth, so that those of a device are looked at.
        let truths = self.device().is_cpu() && self.dtype() == DType::Bool;
        let _site = site::enter("aten::copy_");
        backend::of(served)?.copy(part(from), part(self), non_blocking && !truths)?;
        if truths {
            self.write().bytes().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(())
    }

    /// This tensor in host memory that devices reach by themselves, so that copies to them need not wait; itself
    /// if it is there already.
    ///
    /// ```no_run
    /// # use cresset_tensor::{Device, Result, Tensor, To};
    /// # fn f(npu: Device) -> Result<()> {
    /// let batch = Tensor::rand([32, 784], ())?.pin_memory()?;
    /// let there = batch.to(To { device: Some(npu), non_blocking: true, ..To::default() })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the tensor is not on the host, or there is no device that reaches its memory.
    pub fn pin_memory(&self) -> Result<Tensor> {
        const NAME: &str = "aten::pin_memory";
        let _span = composite(NAME, [self], |_| {});
        if !self.device().is_cpu() {
            let text =
                format_args!("only tensors on the host can be pinned, and this one is on {}", self.device());
            return Err(Error::new(Cause::Device, NAME, text));
        }
        if self.is_pinned() {
            return Ok(self.clone());
        }
        let Some(out) = pinned(self.shape(), self.dtype())? else {
            let text = "there is no device that reaches host memory by itself; initialise its crate first";
            return Err(Error::new(Cause::Device, NAME, text));
        };
        out.copy_(self)?;
        Ok(out)
    }

    /// Whether the elements are in host memory that devices reach by themselves.
    pub fn is_pinned(&self) -> bool {
        self.storage().host().is_some_and(backend::Buffer::is_foreign)
    }
}

/// Memory for the elements of `x` on another device; pinned where a copy to the host is not to be waited for.
fn room(x: &Tensor, device: Device, non_blocking: bool) -> Result<Tensor> {
    let make =
        || match device.is_cpu() && non_blocking && x.dtype() != DType::Bool {
            true => Ok(pinned(x.shape(), x.dtype())?
                .map_or_else(|| Tensor::uninit(x.shape(), x.dtype(), device), Ok)?),
            false => Tensor::uninit(x.shape(), x.dtype(), device),
        };
    if !observe::is_watched() {
        return make();
    }
    let (shape, strides) = (shown::ints(x.shape()), shown::ints(x.strides()));
    let (dtype, pinned) = (shown::dtype_code(x.dtype()), Argument::Bool(device.is_cpu() && non_blocking));
    let more = [
        Argument::Ints(&shape),
        Argument::Ints(&strides),
        dtype,
        shown::STRIDED,
        Argument::Device(device),
        pinned,
    ];
    shown::within("aten::empty_strided", shown::NOTHING, &more, make)
}

/// Host memory of the first device that reaches any, contents undefined.
fn pinned(shape: &[usize], dtype: DType) -> Result<Option<Tensor>> {
    let Some(layout) = Layout::contiguous(shape) else {
        return Err(Error::new(Cause::Memory, "", format_args!("{shape:?} are too many elements")));
    };
    let bytes = layout.len().saturating_mul(dtype.size());
    for key in Key::backends() {
        if let Some(backend) = backend::find(key)
            && let Some(buffer) = backend.pin(bytes)?
        {
            return Ok(Some(Tensor::from_parts(Storage::pinned(buffer), layout, dtype)));
        }
    }
    Ok(None)
}

fn part(x: &Tensor) -> Part<'_> {
    let size = x.dtype().size();
    Part { storage: x.storage(), offset: x.layout().offset() * size, bytes: x.numel() * size }
}
