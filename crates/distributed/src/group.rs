//! Processes that know each other, and exchange tensors.

use crate::backend::{About, Backend, Collective, Pending, Reduce};
use crate::call::CollectiveCall;
use cresset_dispatch::group::{self, Group, Joined};
use cresset_dispatch::observe::{self, Span};
use cresset_tensor::{Cause, Device, Error, Result, Tensor, no_grad};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One rank's view of a group of processes. A clone is the same group.
///
/// All ranks must call the same collectives in the same order, with tensors of the same shapes. A call returns
/// when the work is queued: what is done with the tensor afterwards, on this thread, comes after the collective.
/// That another rank failed shows where results are waited for.
#[derive(Clone)]
pub struct ProcessGroup(Arc<Inner>);

struct Inner {
    backend: Box<dyn Backend>,
    name: String,
    rank: u32,
    ranks: Vec<u32>,
    /// How many collectives there were.
    calls: AtomicU64,
    /// Lets traces know of the group.
    _known: Joined,
}

impl ProcessGroup {
    /// The group `name`, over a library that has joined it.
    ///
    /// # Errors
    /// If the library says that this process is a rank which the group does not have.
    pub fn new(backend: impl Backend, name: &str) -> Result<ProcessGroup> {
        let (rank, size) = (backend.rank(), backend.size());
        if rank >= size {
            let text = format_args!("rank {rank} of {size}, expected a rank below the number of ranks");
            return Err(Error::new(Cause::Argument, "ProcessGroup", text));
        }
        let ranks: Vec<u32> = (0..size).collect();
        let known =
            group::join(Group { name: name.to_owned(), backend: backend.name(), rank, ranks: ranks.clone() });
        let (backend, name) = (Box::new(backend), name.to_owned());
        Ok(ProcessGroup(Arc::new(Inner {
            backend,
            name,
            rank,
            ranks,
            calls: AtomicU64::new(0),
            _known: known,
        })))
    }

    /// Which rank this process is.
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.0.ranks.len() as u32
    }

    /// The name of the group.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What carries its tensors.
    pub fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    /// Where tensors must be to be exchanged.
    pub fn device(&self) -> Device {
        self.0.backend.device()
    }

    /// Starts a collective, and goes on beside it: only what comes after [`Started::wait`] comes after it.
    /// Tensors must be contiguous.
    ///
    /// # Errors
    /// If it names a rank that there is not, or the backend cannot carry the tensors.
    pub fn start(&self, collective: Collective<'_>) -> Result<Started> {
        let inner = &*self.0;
        self.check(collective)?;
        let sequence = inner.calls.fetch_add(1, Relaxed);
        let span = observe::span(&CollectiveCall {
            collective,
            group: &inner.name,
            ranks: &inner.ranks,
            rank: inner.rank,
            sequence,
            device: inner.backend.device(),
        });
        let started = inner.backend.start(collective);
        Span::end(span, &started);
        started.map(Started)
    }

    fn check(&self, collective: Collective<'_>) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let text = match collective.about() {
            About::Root(root) if root >= size => format!("there is no rank {root}: there are {size}"),
            About::Peer(peer) if peer >= size => format!("there is no rank {peer}: there are {size}"),
            About::Peer(peer) if peer == rank => format!("rank {rank} is this one; expected another"),
            _ => return Ok(()),
        };
        Err(Error::new(Cause::Argument, "ProcessGroup", text))
    }

    fn finish(&self, collective: Collective<'_>) -> Result<()> {
        self.start(collective)?.wait()
    }

    /// Every rank's `tensor` becomes what all of them together make.
    ///
    /// # Errors
    /// If the backend cannot carry the tensor.
    pub fn all_reduce(&self, tensor: &Tensor, reduce: Reduce) -> Result<()> {
        in_place(tensor, |tensor| self.finish(Collective::AllReduce { tensor, reduce }))
    }

    /// The `tensor` of rank `root` becomes what all of them together make; those of others stay.
    ///
    /// # Errors
    /// If the backend cannot carry the tensor, or there is no such rank.
    pub fn reduce(&self, tensor: &Tensor, reduce: Reduce, root: u32) -> Result<()> {
        in_place(tensor, |tensor| self.finish(Collective::Reduce { tensor, reduce, root }))
    }

    /// Every rank's `tensor` becomes that of rank `root`.
    ///
    /// # Errors
    /// If the backend cannot carry the tensor, or there is no such rank.
    pub fn broadcast(&self, tensor: &Tensor, root: u32) -> Result<()> {
        in_place(tensor, |tensor| self.finish(Collective::Broadcast { tensor, root }))
    }

    /// The tensors of all ranks, one after the other along the first dimension.
    ///
    /// # Errors
    /// If the backend cannot carry the tensor.
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Tensor> {
        let _quiet = no_grad();
        let from = if tensor.dim() == 0 { tensor.reshape([1])? } else { tensor.contiguous()? };
        let mut shape = from.shape().to_vec();
        shape[0] *= self.size() as usize;
        let to = Tensor::empty(shape, (from.dtype(), from.device()))?;
        self.finish(Collective::AllGather { from: &from, to: &to })?;
        Ok(to)
    }

    /// This rank's part, along the first dimension, of what the tensors of all ranks together make.
    ///
    /// # Errors
    /// If the backend cannot carry the tensor, or its first dimension cannot be divided by the number of ranks.
    pub fn reduce_scatter(&self, tensor: &Tensor, reduce: Reduce) -> Result<Tensor> {
        let (_quiet, ranks) = (no_grad(), self.size() as usize);
        let from = tensor.contiguous()?;
        let mut shape = from.shape().to_vec();
        match shape.first_mut().filter(|first| first.is_multiple_of(ranks)) {
            Some(first) => *first /= ranks,
            None => {
                let text = format_args!("a tensor of shape {shape:?} cannot be divided among {ranks} ranks");
                return Err(Error::new(Cause::Shape, "reduce_scatter", text));
            }
        }
        let to = Tensor::empty(shape, (from.dtype(), from.device()))?;
        self.finish(Collective::ReduceScatter { from: &from, to: &to, reduce })?;
        Ok(to)
    }

    /// Sends `tensor` to another rank, which must [receive](ProcessGroup::receive) one of the same shape.
    ///
    /// # Errors
    /// If the backend cannot carry the tensor, or `to` is none of the others.
    pub fn send(&self, tensor: &Tensor, to: u32) -> Result<()> {
        self.finish(Collective::Send { tensor: &tensor.contiguous()?, to })
    }

    /// Overwrites `tensor` with what another rank [sends](ProcessGroup::send).
    ///
    /// # Errors
    /// If the backend cannot carry the tensor, or `from` is none of the others.
    pub fn receive(&self, tensor: &Tensor, from: u32) -> Result<()> {
        in_place(tensor, |tensor| self.finish(Collective::Receive { tensor, from }))
    }

    /// Waits, on the host, until all ranks have come here.
    ///
    /// # Errors
    /// Which rank is gone, gave up, or did not come in time.
    pub fn barrier(&self) -> Result<()> {
        self.start(Collective::Barrier)?.synchronize()
    }

    /// Whether it is so on any rank: how ranks agree on whether to go on. The host waits for it.
    ///
    /// ```
    /// # use cresset_distributed::{Alone, ProcessGroup};
    /// # let group = ProcessGroup::new(Alone::new(cresset_tensor::Device::CPU), "world")?;
    /// # let mut batches = [1, 2].into_iter();
    /// // Ranks that ran out of samples go on until all have.
    /// let mut batch = batches.next();
    /// while group.any(batch.is_some())? {
    ///     // a step with `batch`, or DataParallel::backward_without_samples() where there is none
    ///     batch = batches.next();
    /// }
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// Which rank is gone, gave up, or did not come in time.
    pub fn any(&self, here: bool) -> Result<bool> {
        let _quiet = no_grad();
        let flag = Tensor::full([1], i64::from(here), self.device())?;
        self.all_reduce(&flag, Reduce::Max)?;
        Ok(flag.item()?.as_f64() != 0.0)
    }
}

impl fmt::Debug for ProcessGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { backend, name, rank, ranks, .. } = &*self.0;
        write!(
            f,
            "ProcessGroup({name}: rank {rank} of {}, {} on {})",
            ranks.len(),
            backend.name(),
            backend.device()
        )
    }
}

/// Lets `collective` have the elements of `tensor` without gaps, and puts back what becomes of them.
fn in_place(tensor: &Tensor, collective: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    let _quiet = no_grad();
    if tensor.is_contiguous() {
        return collective(tensor);
    }
    let whole = tensor.contiguous()?;
    collective(&whole)?;
    tensor.copy_(&whole)
}

/// A collective that was started. Dropping it changes nothing: the work goes on.
#[must_use = "work that is queued now does not wait for the collective unless it is told to"]
pub struct Started(Box<dyn Pending>);

impl Started {
    /// Makes all that this thread does from now on come after the collective.
    ///
    /// # Errors
    /// What is known to have failed.
    pub fn wait(&self) -> Result<()> {
        self.0.wait()
    }

    /// Waits on the host until it is done.
    ///
    /// # Errors
    /// Which rank is gone, gave up, or did not come in time.
    pub fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }
}
