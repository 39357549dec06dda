//! Threads that load batches ahead of time.
//!
//! Of w workers, number i loads every w-th batch from the i-th on and has a channel of its own, which
//! holds as many as it may be ahead. So batches come in order without anyone sorting them.

use crate::Dataset;
use crate::loader::Plan;
use cresset_tensor::Result;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

pub(crate) struct Workers<B> {
    /// The first batch that is loaded.
    first: usize,
    channels: Vec<Receiver<Result<B>>>,
    threads: Vec<JoinHandle<()>>,
}

impl<B: Send + 'static> Workers<B> {
    pub(crate) fn start<D>(plan: &Arc<Plan<D>>, first: usize, count: usize, ahead: usize) -> Workers<B>
    where
        D: Dataset<Batch = B> + 'static,
    {
        let count = count.min(plan.batches.saturating_sub(first)).max(1);
        let mut workers = Workers { first, channels: Vec::new(), threads: Vec::new() };
        for i in 0..count {
            let (sender, receiver) = sync_channel(ahead.max(1));
            let plan = plan.clone();
            let name = format!("data-worker-{i}");
            let work = move || load(&plan, (first + i..plan.batches).step_by(count), &sender);
            // Without a thread its channel is closed, and the loader says so.
            workers.threads.extend(std::thread::Builder::new().name(name).spawn(work));
            workers.channels.push(receiver);
        }
        workers
    }

    /// Waits for a batch; they are asked for in order. `None` if its worker is gone.
    pub(crate) fn batch(&self, number: usize) -> Option<Result<B>> {
        self.channels[(number - self.first) % self.channels.len()].recv().ok()
    }
}

fn load<D: Dataset>(plan: &Plan<D>, batches: impl Iterator<Item = usize>, to: &SyncSender<Result<D::Batch>>) {
    for number in batches {
        if to.send(plan.load(number)).is_err() {
            return;
        }
    }
}

impl<B> Drop for Workers<B> {
    fn drop(&mut self) {
        // Whoever waits for room sees that nobody will make it.
        self.channels.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
