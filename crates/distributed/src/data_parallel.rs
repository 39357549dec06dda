//! A module that several ranks train together.

use crate::group::ProcessGroup;
use crate::reducer::Reducer;
use cresset_nn::{Forward, Members, Module, Tensors};
use cresset_tensor::{Cause, Error, Result, Tensor, no_grad};
use std::sync::Arc;

/// How gradients are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataParallelOptions {
    /// Bytes of gradients that travel together.
    pub bucket_bytes: usize,
    /// The same for the first that are complete, so that exchanging begins early.
    pub first_bucket_bytes: usize,
    /// Whether buffers, such as running means, become those of rank 0 before each call in training.
    pub broadcast_buffers: bool,
}

impl Default for DataParallelOptions {
    fn default() -> DataParallelOptions {
        DataParallelOptions { bucket_bytes: 25 << 20, first_bucket_bytes: 1 << 20, broadcast_buffers: true }
    }
}

/// A module of which every rank has a copy, and trains it with its part of each batch. After a backward pass
/// all copies have the mean of the gradients of all ranks, so that the same step is taken everywhere.
///
/// Gradients are exchanged in buckets while the backward pass still computes others. Names of parameters are those
/// of the module itself, and so are files.
///
/// Make it after the module is on its device, and the optimizer after it. All ranks must make the same calls; one
/// that has nothing to compute says so by [`backward_without_samples`](DataParallel::backward_without_samples).
pub struct DataParallel<M> {
    module: M,
    group: ProcessGroup,
    reducer: Arc<Reducer>,
    options: DataParallelOptions,
}

impl<M: Module> DataParallel<M> {
    /// Wraps a module, and gives all ranks the parameters and buffers of rank 0.
    ///
    /// # Errors
    /// If the module is not on the device of the group, or differs from that of other ranks.
    pub fn new(module: M, group: &ProcessGroup) -> Result<DataParallel<M>> {
        DataParallel::with(module, group, DataParallelOptions::default())
    }

    /// As [`new`](DataParallel::new), with options.
    ///
    /// # Errors
    /// As for [`new`](DataParallel::new).
    pub fn with(module: M, group: &ProcessGroup, options: DataParallelOptions) -> Result<DataParallel<M>> {
        check_device(&module, group)?;
        check_alike(&module, group)?;
        state(&module).iter().try_for_each(|(_, tensor)| group.broadcast(tensor, 0))?;
        let DataParallelOptions { first_bucket_bytes, bucket_bytes, .. } = options;
        let reducer = Reducer::new(module.parameters(), group, first_bucket_bytes, bucket_bytes)?;
        Ok(DataParallel { module, group: group.clone(), reducer, options })
    }

    /// The module itself.
    pub fn module(&self) -> &M {
        &self.module
    }

    /// The ranks that train it.
    pub fn group(&self) -> &ProcessGroup {
        &self.group
    }

    /// In how many buckets gradients travel.
    pub fn buckets(&self) -> usize {
        self.reducer.buckets()
    }

    /// Until the guard drops, backward passes exchange nothing: gradients add up here, and are exchanged by the first
    /// pass afterwards. For batches that are too large for one pass.
    ///
    /// ```
    /// # use cresset_distributed::{Alone, DataParallel, ProcessGroup};
    /// # use cresset_nn::{Forward, Linear};
    /// # use cresset_tensor::{Device, Tensor};
    /// # let group = ProcessGroup::new(Alone::new(Device::CPU), "world")?;
    /// # let (first, last) = (Tensor::ones([3, 4], ())?, Tensor::ones([3, 4], ())?);
    /// let model = DataParallel::new(Linear::new(4, 2)?, &group)?;
    /// {
    ///     let _here_only = model.no_sync();
    ///     model.call(&first)?.mean()?.backward()?;
    /// }
    /// model.call(&last)?.mean()?.backward()?; // the gradients of both are exchanged
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn no_sync(&self) -> NoSync<'_> {
        NoSync { reducer: &self.reducer, before: self.reducer.set_sync(false) }
    }

    /// Says that losses from now on are means of so many samples, so that gradients become the mean over all samples
    /// of all ranks also where ranks have unequal parts. Without it all ranks count the same.
    pub fn set_samples(&self, samples: usize) {
        self.reducer.set_weight(samples as f64);
    }

    /// Takes part in the exchange of gradients without any of its own: for a rank that has no samples in a step
    /// that others take. It gets the same gradients as all.
    ///
    /// # Errors
    /// If gradients cannot be exchanged.
    pub fn backward_without_samples(&self) -> Result<()> {
        self.share_buffers()?;
        self.reducer.pass_without_samples()
    }

    /// Makes buffers those of rank 0, if that is wanted.
    fn share_buffers(&self) -> Result<()> {
        let _quiet = no_grad();
        if !self.options.broadcast_buffers || !self.reducer.is_sync() {
            return Ok(());
        }
        self.module.named_buffers().iter().try_for_each(|(_, buffer)| self.group.broadcast(buffer, 0))
    }
}

impl<M: Module> Module for DataParallel<M> {
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        self.module.members(members);
    }
}

impl<I: Tensors, M: Forward<I>> Forward<I> for DataParallel<M> {
    type Output = M::Output;

    fn forward(&self, input: I::Ref<'_>) -> Result<M::Output> {
        if cresset_tensor::autograd::is_grad_enabled() {
            self.reducer.check(&self.module.parameters())?;
            self.share_buffers()?;
        }
        self.module.call(input)
    }
}

/// Guard of [`DataParallel::no_sync`].
#[must_use = "gradients are exchanged again as soon as the guard drops"]
pub struct NoSync<'a> {
    reducer: &'a Reducer,
    before: bool,
}

impl Drop for NoSync<'_> {
    fn drop(&mut self) {
        self.reducer.set_sync(self.before);
    }
}

/// Everything the module owns, by name.
fn state(module: &impl Module) -> Vec<(String, Tensor)> {
    module.named_parameters().into_iter().chain(module.named_buffers()).collect()
}

fn check_device(module: &impl Module, group: &ProcessGroup) -> Result<()> {
    let device = group.device();
    match state(module).iter().find(|(_, tensor)| tensor.device() != device) {
        None => Ok(()),
        Some((name, tensor)) => {
            let on = tensor.device();
            let text = format_args!("{name} is on {on}, and {group:?} exchanges tensors on {device}");
            Err(Error::new(Cause::Device, "DataParallel", text))
        }
    }
}

/// Fails on all ranks unless they have the same parameters and buffers: exchanged, others would be mixed up.
fn check_alike(module: &impl Module, group: &ProcessGroup) -> Result<()> {
    let sum = Tensor::from_slice(&[fingerprint(&state(module))], [1])?.to(group.device())?;
    let all: Vec<i64> = group.all_gather(&sum)?.to_vec()?;
    match all.iter().position(|other| *other != all[0]) {
        None => Ok(()),
        Some(rank) => {
            let text =
                format_args!("the module of rank {rank} has other parameters or buffers than that of rank 0");
            Err(Error::new(Cause::Shape, "DataParallel", text))
        }
    }
}

/// A number that depends on names, shapes and types, the same in every process.
fn fingerprint(state: &[(String, Tensor)]) -> i64 {
    let text = |(name, tensor): &(String, Tensor)| format!("{name} {:?} {};", tensor.shape(), tensor.dtype());
    // FNV-1a: the standard library's hash promises nothing between two builds.
    let add = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    state.iter().flat_map(|one| text(one).into_bytes()).fold(0xcbf2_9ce4_8422_2325, add) as i64
}
