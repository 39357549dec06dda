//! What the devices of a group do together, with tensors.
//!
//! A collective waits for the work that this thread gave to its stream so far, and then runs on the stream of the
//! [`Communicator`]. [`Queued`] stands for its end.

use crate::activity::launching;
use crate::allocator::Block;
use crate::communicator::{Communicator, functions};
use crate::device;
use crate::event::{self, Event};
use crate::launches::launched;
use crate::status::check_collective;
use crate::stream::{self, Stream};
use cresset_acl::collective::{element, operation};
use cresset_dispatch::activity::Work;
use cresset_tensor::{Cause, DType, Error, Result, Tensor};
use std::ffi::c_void;

/// What becomes of the elements that all ranks have at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

impl Reduction {
    fn number(self) -> i32 {
        match self {
            Reduction::Sum => operation::SUM,
            Reduction::Product => operation::PRODUCT,
            Reduction::Max => operation::MAXIMUM,
            Reduction::Min => operation::MINIMUM,
        }
    }
}

/// A collective that was queued. Dropping it changes nothing: the work goes on.
#[must_use = "work that is queued now does not wait for the collective unless it is told to"]
pub struct Queued {
    end: Option<Event>,
    stream: Stream,
}

impl Queued {
    /// Makes what this thread queues from now on wait for the collective. The host does not wait.
    ///
    /// # Errors
    /// If the device failed.
    pub fn wait(&self) -> Result<()> {
        let current = stream::current(self.stream.device_index())?;
        match &self.end {
            Some(end) => Ok(current.hold(end)?),
            None => Ok(()),
        }
    }

    /// Waits on the host until all that the communicator was given before is done.
    ///
    /// # Errors
    /// What failed: another rank is gone, gave up, or did not come in time.
    pub fn synchronize(&self) -> Result<()> {
        self.stream.synchronize()
    }

    /// Whether it is done.
    ///
    /// # Errors
    /// If the device failed.
    pub fn is_done(&self) -> Result<bool> {
        self.end.as_ref().map_or(Ok(true), Event::query)
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        // A wait is bound to the point that was recorded when it was queued.
        self.end.take().into_iter().for_each(event::spare);
    }
}

/// A collective, by what the library and people call it.
struct Call<'a> {
    group: &'a Communicator,
    function: &'static str,
    /// What is said of it in errors, and who changed a tensor.
    op: &'static str,
}

impl Communicator {
    /// Every rank's `tensor` becomes what all of them together make.
    ///
    /// # Errors
    /// If the tensor is elsewhere, has gaps, or is of truth values.
    pub fn all_reduce(&self, tensor: &Tensor, reduction: Reduction) -> Result<Queued> {
        let call = Call { group: self, function: "HcclAllReduce", op: "all_reduce" };
        let (address, dtype) = (call.changed(tensor)?, call.reducible(tensor)?);
        let (count, operation, raw) = (tensor.numel() as u64, reduction.number(), self.raw());
        let run = functions()?.HcclAllReduce;
        // SAFETY: the address holds `count` elements, and is kept until the stream is done.
        call.queue(tensor, |stream| unsafe {
            run(address, address, count, dtype, operation, raw, stream.raw())
        })
    }

    /// The `tensor` of rank `root` becomes what all of them together make; those of others stay.
    ///
    /// # Errors
    /// As [`all_reduce`](Communicator::all_reduce), or if there is no such rank.
    pub fn reduce(&self, tensor: &Tensor, reduction: Reduction, root: u32) -> Result<Queued> {
        let call = Call { group: self, function: "HcclReduce", op: "reduce" };
        call.check_rank(root)?;
        let address = if root == self.rank() { call.changed(tensor)? } else { call.read(tensor)? };
        let (count, dtype, raw) = (tensor.numel() as u64, call.reducible(tensor)?, self.raw());
        let run = functions()?.HcclReduce;
        // SAFETY: as for `all_reduce`.
        call.queue(tensor, |stream| unsafe {
            run(address, address, count, dtype, reduction.number(), root, raw, stream.raw())
        })
    }

    /// Every rank's `tensor` becomes that of rank `root`.
    ///
    /// # Errors
    /// If the tensor is elsewhere or has gaps, or there is no such rank.
    pub fn broadcast(&self, tensor: &Tensor, root: u32) -> Result<Queued> {
        let call = Call { group: self, function: "HcclBroadcast", op: "broadcast" };
        call.check_rank(root)?;
        let address = if root == self.rank() { call.read(tensor)? } else { call.changed(tensor)? };
        let (count, dtype, raw) = (tensor.numel() as u64, number_of(tensor.dtype()), self.raw());
        let run = functions()?.HcclBroadcast;
        // SAFETY: as for `all_reduce`.
        call.queue(tensor, |stream| unsafe { run(address, count, dtype, root, raw, stream.raw()) })
    }

    /// `to` becomes the `from` of all ranks, one after the other.
    ///
    /// # Errors
    /// If a tensor is elsewhere or has gaps, or `to` has not as many elements as all `from` together.
    pub fn all_gather(&self, from: &Tensor, to: &Tensor) -> Result<Queued> {
        let call = Call { group: self, function: "HcclAllGather", op: "all_gather" };
        call.check_parts(from, to)?;
        let (source, target) = (call.read(from)?, call.changed(to)?);
        let (count, dtype, raw) = (from.numel() as u64, number_of(from.dtype()), self.raw());
        let run = functions()?.HcclAllGather;
        // SAFETY: as for `all_reduce`; there is room for the elements of all ranks.
        call.queue(from, |stream| unsafe { run(source, target, count, dtype, raw, stream.raw()) })
    }

    /// `to` becomes this rank's part of what all `from` together make.
    ///
    /// # Errors
    /// As [`all_reduce`](Communicator::all_reduce), or if `from` has not as many elements as all `to` together.
    pub fn reduce_scatter(&self, from: &Tensor, to: &Tensor, reduction: Reduction) -> Result<Queued> {
        let call = Call { group: self, function: "HcclReduceScatter", op: "reduce_scatter" };
        call.check_parts(to, from)?;
        let (source, target) = (call.read(from)?, call.changed(to)?);
        let (count, dtype, raw) = (to.numel() as u64, call.reducible(to)?, self.raw());
        let run = functions()?.HcclReduceScatter;
        // SAFETY: as for `all_reduce`; there is a part for every rank.
        call.queue(to, |stream| unsafe {
            run(source, target, count, dtype, reduction.number(), raw, stream.raw())
        })
    }

    /// Sends `tensor` to another rank, which must [receive](Communicator::receive) as many elements.
    ///
    /// # Errors
    /// If the tensor is elsewhere or has gaps, or `rank` is none of the others.
    pub fn send(&self, tensor: &Tensor, rank: u32) -> Result<Queued> {
        let call = Call { group: self, function: "HcclSend", op: "send" };
        call.check_peer(rank)?;
        let (address, count) = (call.read(tensor)?, tensor.numel() as u64);
        let (dtype, raw, run) = (number_of(tensor.dtype()), self.raw(), functions()?.HcclSend);
        // SAFETY: as for `all_reduce`.
        call.queue(tensor, |stream| unsafe { run(address, count, dtype, rank, raw, stream.raw()) })
    }

    /// Fills `tensor` with what another rank [sends](Communicator::send).
    ///
    /// # Errors
    /// If the tensor is elsewhere or has gaps, or `rank` is none of the others.
    pub fn receive(&self, tensor: &Tensor, rank: u32) -> Result<Queued> {
        let call = Call { group: self, function: "HcclRecv", op: "receive" };
        call.check_peer(rank)?;
        let (address, count) = (call.changed(tensor)?, tensor.numel() as u64);
        let (dtype, raw, run) = (number_of(tensor.dtype()), self.raw(), functions()?.HcclRecv);
        // SAFETY: as for `all_reduce`.
        call.queue(tensor, |stream| unsafe { run(address, count, dtype, rank, raw, stream.raw()) })
    }

    /// Does nothing, but not before all ranks have come to it.
    ///
    /// # Errors
    /// If the device failed.
    pub fn barrier(&self) -> Result<Queued> {
        let call = Call { group: self, function: "HcclBarrier", op: "barrier" };
        let (raw, run) = (self.raw(), functions()?.HcclBarrier);
        // SAFETY: the handles are alive.
        call.launch(0, |stream| unsafe { run(raw, stream.raw()) })
    }
}

impl Call<'_> {
    /// Where the elements of a tensor begin, for a collective that reads them.
    fn read(&self, tensor: &Tensor) -> Result<*mut c_void> {
        let block = tensor.storage().device_memory::<Block>();
        let Some(block) = block.filter(|_| tensor.device() == self.group.device()) else {
            return Err(self.fault(
                Cause::Device,
                format_args!(
                    "a tensor on {} was given to {:?}; move it with to()",
                    tensor.device(),
                    self.group
                ),
            ));
        };
        if !tensor.is_contiguous() {
            let text = format_args!(
                "a tensor of shape {:?} and strides {:?} has gaps; expected one that is contiguous()",
                tensor.shape(),
                tensor.strides()
            );
            return Err(self.fault(Cause::Argument, text));
        }
        block.used_on(self.group.stream());
        Ok((block.address() + tensor.layout().offset() * tensor.dtype().size()) as *mut c_void)
    }

    /// As [`read`](Call::read), for one that writes them.
    fn changed(&self, tensor: &Tensor) -> Result<*mut c_void> {
        let address = self.read(tensor)?;
        tensor.storage().changed(self.op);
        Ok(address)
    }

    /// The number of an element type that can be reduced.
    fn reducible(&self, tensor: &Tensor) -> Result<i32> {
        match tensor.dtype() {
            DType::Bool => {
                let text = "truth values cannot be reduced; expected numbers, as of to_dtype(DType::U8)";
                Err(self.fault(Cause::DType, format_args!("{text}")))
            }
            dtype => Ok(number_of(dtype)),
        }
    }

    /// Fails unless `whole` has a `part` for every rank.
    fn check_parts(&self, part: &Tensor, whole: &Tensor) -> Result<()> {
        let ranks = self.group.size() as usize;
        if part.numel() * ranks == whole.numel() && part.dtype() == whole.dtype() {
            return Ok(());
        }
        let text = format_args!(
            "parts of {} elements of {} and {} elements of {} in all, expected {ranks} times as many of one type",
            part.numel(),
            part.dtype(),
            whole.numel(),
            whole.dtype()
        );
        Err(self.fault(Cause::Shape, text))
    }

    fn check_rank(&self, rank: u32) -> Result<()> {
        let size = self.group.size();
        if rank < size {
            return Ok(());
        }
        Err(self.fault(Cause::Argument, format_args!("there is no rank {rank}: there are {size}")))
    }

    fn check_peer(&self, rank: u32) -> Result<()> {
        self.check_rank(rank)?;
        if rank != self.group.rank() {
            return Ok(());
        }
        Err(self.fault(Cause::Argument, format_args!("rank {rank} is this rank itself")))
    }

    fn fault(&self, cause: Cause, text: std::fmt::Arguments<'_>) -> Error {
        Error::new(cause, self.op, text)
    }

    fn queue(&self, tensor: &Tensor, run: impl FnOnce(&Stream) -> i32) -> Result<Queued> {
        if tensor.numel() == 0 {
            return Ok(Queued { end: None, stream: self.group.stream().clone() });
        }
        self.launch(tensor.numel() * tensor.dtype().size(), run)
    }

    /// Queues the collective after what this thread's stream has so far.
    fn launch(&self, bytes: usize, run: impl FnOnce(&Stream) -> i32) -> Result<Queued> {
        let stream = self.group.stream();
        device::bind(stream.device_index())?;
        stream.wait_for(&stream::current(stream.device_index())?)?;
        let code = launching(self.function, Work::Kernel, bytes, stream, || run(stream));
        check_collective(self.function, code)?;
        launched(self.function, stream)?;
        let end = event::untimed(stream.device_index())?;
        end.mark(stream)?;
        Ok(Queued { end: Some(end), stream: stream.clone() })
    }
}

/// The number that libraries for communication have for an element type.
fn number_of(dtype: DType) -> i32 {
    match dtype {
        DType::Bool | DType::U8 => element::UINT8,
        DType::I8 => element::INT8,
        DType::I16 => element::INT16,
        DType::I32 => element::INT32,
        DType::I64 => element::INT64,
        DType::F16 => element::FLOAT16,
        DType::BF16 => element::BF16,
        DType::F32 => element::FLOAT,
        DType::F64 => element::DOUBLE,
    }
}
