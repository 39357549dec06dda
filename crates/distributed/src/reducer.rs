//! When which gradients are exchanged.
//!
//! A hook on every parameter tells that its gradient is complete. As soon as all gradients of a bucket are, it
//! travels while the backward pass goes on. Buckets travel in the same order on all ranks, whatever order
//! gradients come in; those that are not complete when the pass ends travel then.

use crate::bucket::{self, Bucket, Travelling};
use crate::group::ProcessGroup;
use cresset_tensor::autograd::{HookHandle, at_end_of_backward};
use cresset_tensor::{Cause, Error, Result, Tensor, no_grad};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// Exchanges the gradients of some parameters.
pub(crate) struct Reducer {
    group: ProcessGroup,
    parameters: Vec<Tensor>,
    buckets: Vec<Bucket>,
    /// The bucket of each parameter.
    bucket_of: Vec<usize>,
    state: Mutex<State>,
    hooks: Mutex<Vec<HookHandle>>,
}

/// Where the current backward pass is.
struct State {
    /// Whether gradients are exchanged at all.
    sync: bool,
    /// How much the gradients of this rank count.
    weight: f64,
    /// Whether a pass was begun and not yet ended.
    in_pass: bool,
    /// By bucket, how many gradients are still to come.
    missing: Vec<usize>,
    /// The buckets that were sent, in order.
    travelling: Vec<Travelling>,
}

impl Reducer {
    pub(crate) fn new(
        parameters: Vec<Tensor>,
        group: &ProcessGroup,
        first: usize,
        bytes: usize,
    ) -> Result<Arc<Reducer>> {
        let parameters: Vec<Tensor> = parameters.into_iter().filter(Tensor::requires_grad).collect();
        let buckets = bucket::divide(&parameters, first, bytes);
        let mut bucket_of = vec![0; parameters.len()];
        for (number, bucket) in buckets.iter().enumerate() {
            bucket.parameters.iter().for_each(|&at| bucket_of[at] = number);
        }
        let missing = buckets.iter().map(|bucket| bucket.parameters.len()).collect();
        let state = State { sync: true, weight: 1.0, in_pass: false, missing, travelling: Vec::new() };
        let reducer = Arc::new(Reducer {
            group: group.clone(),
            parameters,
            buckets,
            bucket_of,
            state: Mutex::new(state),
            hooks: Mutex::default(),
        });
        for (at, parameter) in reducer.parameters.iter().enumerate() {
            let owner: Weak<Reducer> = Arc::downgrade(&reducer);
            let hook = move |_: &Tensor| owner.upgrade().map_or(Ok(()), |reducer| reducer.complete(at));
            reducer.hooks.lock().push(parameter.register_post_accumulate_grad_hook(hook)?);
        }
        Ok(reducer)
    }

    /// Fails if the module has other parameters by now: their gradients would stay here.
    pub(crate) fn check(&self, parameters: &[Tensor]) -> Result<()> {
        let learned = parameters.iter().filter(|parameter| parameter.requires_grad());
        let is_unknown = |parameter: &&Tensor| !self.parameters.iter().any(|known| known.same_as(parameter));
        // Nearly always they are the same in the same order, which takes one look at each.
        if learned.clone().zip(&self.parameters).all(|(now, then)| now.same_as(then))
            && learned.clone().count() <= self.parameters.len()
        {
            return Ok(());
        }
        match learned.clone().find(is_unknown) {
            None => Ok(()),
            Some(parameter) => {
                let text = format_args!(
                    "a parameter of shape {:?} was put in or moved after DataParallel was made; make it again",
                    parameter.shape()
                );
                Err(Error::new(Cause::Graph, "DataParallel", text))
            }
        }
    }

    /// How many buckets there are.
    pub(crate) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Exchanges gradients from now on, or not; gives back what was before.
    pub(crate) fn set_sync(&self, on: bool) -> bool {
        std::mem::replace(&mut self.state.lock().sync, on)
    }

    /// Whether gradients are exchanged.
    pub(crate) fn is_sync(&self) -> bool {
        self.state.lock().sync
    }

    /// Says how much the gradients of this rank count from now on.
    pub(crate) fn set_weight(&self, weight: f64) {
        self.state.lock().weight = weight;
    }

    /// The gradient of a parameter is complete.
    fn complete(self: &Arc<Self>, at: usize) -> Result<()> {
        let mut state = self.state.lock();
        if !state.sync {
            return Ok(());
        }
        if !std::mem::replace(&mut state.in_pass, true) {
            self.begin(&mut state);
            let pass = CurrentPass(self.clone());
            at_end_of_backward(move || pass.0.end())?;
        }
        let bucket = self.bucket_of[at];
        state.missing[bucket] = state.missing[bucket].saturating_sub(1);
        self.send(&mut state, false)
    }

    fn begin(&self, state: &mut State) {
        state.travelling.clear();
        let sizes = self.buckets.iter().map(|bucket| bucket.parameters.len());
        state.missing.iter_mut().zip(sizes).for_each(|(missing, size)| *missing = size);
    }

    /// Sends the next buckets, as many as are complete, or all.
    fn send(&self, state: &mut State, all: bool) -> Result<()> {
        let _quiet = no_grad();
        while let Some(bucket) = self.buckets.get(state.travelling.len()) {
            if !all && state.missing[state.travelling.len()] > 0 {
                break;
            }
            let sent = bucket.send(&self.parameters, state.weight, &self.group)?;
            state.travelling.push(sent);
        }
        Ok(())
    }

    /// Sends what is left, and puts down what became of the gradients.
    fn end(&self) -> Result<()> {
        let _quiet = no_grad();
        let mut state = self.state.lock();
        self.send(&mut state, true)?;
        let travelled = std::mem::take(&mut state.travelling);
        self.buckets
            .iter()
            .zip(travelled)
            .try_for_each(|(bucket, travelled)| bucket.receive(travelled, &self.parameters))
    }

    /// Takes part in the exchange after a pass that this rank had nothing for.
    pub(crate) fn pass_without_samples(&self) -> Result<()> {
        let weight = {
            let mut state = self.state.lock();
            self.begin(&mut state);
            std::mem::replace(&mut state.weight, 0.0)
        };
        let ended = self.end();
        self.set_weight(weight);
        ended
    }
}

/// Until it drops, a pass is going on: also one that fails comes to an end.
struct CurrentPass(Arc<Reducer>);

impl Drop for CurrentPass {
    fn drop(&mut self) {
        self.0.state.lock().in_pass = false;
    }
}

impl Drop for Reducer {
    fn drop(&mut self) {
        self.hooks.get_mut().drain(..).for_each(|hook| hook.remove());
    }
}
