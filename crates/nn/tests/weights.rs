//! No layer copies its weights when it is called: memory is counted, so there is one test in this program.

use cresset_dispatch::memory::{Listener, Report, Slot};
use cresset_nn::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The largest block that was asked for, or copied by a kernel beside its work.
struct Largest(AtomicU64);

impl Listener for Largest {
    fn memory(&self, report: &Report) {
        self.0.fetch_max(report.bytes.max(0) as u64, Relaxed);
    }

    fn copied(&self, bytes: u64) {
        self.0.fetch_max(bytes, Relaxed);
    }
}

static LARGEST: Largest = Largest(AtomicU64::new(0));

/// A layer, what it takes, and its name.
type Case = (&'static str, Box<dyn Fn() -> Result<()>>, u64);

fn case<L, I>(name: &'static str, layer: L, input: I) -> Case
where
    I: Tensors + 'static,
    L: Forward<I> + 'static,
{
    let largest = layer.parameters().iter().map(|weight| weight.numel() as u64 * 4).max().unwrap_or(0);
    (name, Box::new(move || layer.call(input.lend()).map(drop)), largest)
}

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, ()).unwrap()
}

#[test]
fn layers_use_their_weights_where_they_are() {
    let slot = Slot::claim(&LARGEST).expect("a slot is free");
    let cases = [
        case("Linear", Linear::new(512, 512).unwrap(), ones(&[1, 512])),
        case("Bilinear", Bilinear::new(32, 32, 256).unwrap(), (ones(&[1, 32]), ones(&[1, 32]))),
        case("Conv1d", Conv1d::new(64, 256, 5).unwrap(), ones(&[1, 64, 6])),
        case("Conv2d", Conv2d::new(64, 64, 5).unwrap(), ones(&[1, 64, 6, 6])),
        case("ConvTranspose2d", ConvTranspose2d::new(128, 128, 4).unwrap(), ones(&[1, 128, 1, 1])),
        case("Rnn", Rnn::new(256, 256).unwrap(), (ones(&[2, 1, 256]), None::<Tensor>)),
        case("Gru", Gru::new(256, 256).unwrap(), (ones(&[2, 1, 256]), None::<Tensor>)),
        case("Lstm", Lstm::new(256, 256).unwrap(), (ones(&[2, 1, 256]), None::<(Tensor, Tensor)>)),
        case("Embedding", Embedding::new(1024, 64).unwrap(), Tensor::new([3i64, 4]).unwrap()),
    ];
    for (name, call, weight) in &cases {
        LARGEST.0.store(0, Relaxed);
        slot.set_active(true);
        let outcome = call();
        slot.set_active(false);
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
        let largest = LARGEST.0.load(Relaxed);
        assert!(
            largest < *weight,
            "{name} has a weight of {weight} bytes, and made or copied {largest} at once"
        );
    }
}
