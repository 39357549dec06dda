//! No layer copies its weights when it is called: memory is counted, so there is one test in this program.

use cresset_dispatch::memory::{Listener, Report, Slot};
use cresset_nn::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The largest block that was asked for, and the most that a kernel copied beside its work.
struct Largest {
    made: AtomicU64,
    copied: AtomicU64,
}

impl Listener for Largest {
    fn memory(&self, report: &Report) {
        self.made.fetch_max(report.bytes.max(0) as u64, Relaxed);
    }

    fn copied(&self, bytes: u64) {
        self.copied.fetch_max(bytes, Relaxed);
    }
}

static LARGEST: Largest = Largest { made: AtomicU64::new(0), copied: AtomicU64::new(0) };

/// A layer's name, its call, and the size of its largest weight.
type Case = (&'static str, Box<dyn Fn() -> Result<()>>, u64);

fn case<L, I>(layer: Result<L>, input: I) -> Case
where
    I: Tensors + 'static,
    L: Forward<I> + 'static,
{
    let layer = layer.unwrap();
    let largest = layer.parameters().iter().map(|weight| weight.numel() as u64 * 4).max().unwrap_or(0);
    (layer.class(), Box::new(move || layer.call(input.lend()).map(drop)), largest)
}

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, ()).unwrap()
}

/// What `call` made and copied at once, at most.
fn measure((name, call, _): &Case, slot: &Slot) -> (u64, u64) {
    LARGEST.made.store(0, Relaxed);
    LARGEST.copied.store(0, Relaxed);
    slot.set_active(true);
    let outcome = call();
    slot.set_active(false);
    outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
    (LARGEST.made.load(Relaxed), LARGEST.copied.load(Relaxed))
}

#[test]
fn layers_use_their_weights_where_they_are() {
    let slot = Slot::claim(&LARGEST).expect("a slot is free");
    let steps = || ones(&[2, 1, 256]);
    let row = || ones(&[1, 256]);
    let (x, classes) = (ones(&[3, 1, 128]), Tensor::new([3i64]).unwrap());
    let rows = || Tensor::new([[3i64, 4]]).unwrap();
    // Weights that are larger than all that goes in and comes out.
    let matrices = [
        case(Linear::new(512, 512), ones(&[1, 512])),
        case(Bilinear::new(32, 32, 256), (ones(&[1, 32]), ones(&[1, 32]))),
        case(Conv1d::new(64, 256, 5), ones(&[1, 64, 6])),
        case(Conv2d::new(64, 64, 5), ones(&[1, 64, 6, 6])),
        case(Conv2d::new(64, 64, 5).and_then(|conv| conv.groups(2)), ones(&[1, 64, 6, 6])),
        case(Conv3d::new(32, 32, 3), ones(&[1, 32, 3, 3, 3])),
        case(ConvTranspose1d::new(128, 128, 4), ones(&[1, 128, 1])),
        case(ConvTranspose2d::new(128, 128, 4), ones(&[1, 128, 1, 1])),
        case(ConvTranspose3d::new(64, 64, 3), ones(&[1, 64, 1, 1, 1])),
        case(Rnn::new(256, 256), (steps(), None::<Tensor>)),
        case(Gru::new(256, 256), (steps(), None::<Tensor>)),
        case(Lstm::new(256, 256), (steps(), None::<(Tensor, Tensor)>)),
        case(RnnCell::new(256, 256), (row(), None::<Tensor>)),
        case(GruCell::new(256, 256), (row(), None::<Tensor>)),
        case(LstmCell::new(256, 256), (row(), None::<(Tensor, Tensor)>)),
        case(Embedding::new(1024, 64), rows()),
        case(EmbeddingBag::new(1024, 64), (rows(), None, None)),
        case(MultiheadAttention::new(128, 4), Attended::own(Attend::new(&x, &x, &x))),
        case(TransformerEncoderLayer::new(128, 4, 256), Encoded::own(Encode::new(&x))),
        case(TransformerDecoderLayer::new(128, 4, 256), Decoded::own(Decode::new(&x, &x))),
        case(LinearCrossEntropyLoss::new(256, 512), (row(), classes.clone())),
        case(AdaptiveLogSoftmaxWithLoss::new(256, 4096, [512]), (row(), classes)),
    ];
    for case in &matrices {
        let (made, copied) = measure(case, &slot);
        let (name, _, weight) = case;
        assert!(made < *weight, "{name} has a weight of {weight} bytes, and made {made} at once");
        assert!(copied < *weight, "{name} has a weight of {weight} bytes, and copied {copied} at once");
    }
    // Weights that are as large as a sample: what comes out is no smaller, but nothing is copied.
    let vectors = [
        case(BatchNorm1d::new(4096), ones(&[2, 4096])),
        case(BatchNorm2d::new(4096), ones(&[2, 4096, 1, 1])),
        case(BatchNorm3d::new(4096), ones(&[2, 4096, 1, 1, 1])),
        case(InstanceNorm1d::new(4096).and_then(|norm| norm.affine(true)), ones(&[1, 4096, 2])),
        case(LayerNorm::new(4096), ones(&[1, 4096])),
        case(RmsNorm::new(4096), ones(&[1, 4096])),
        case(GroupNorm::new(2, 4096), ones(&[1, 4096, 1])),
        case(Prelu::new().and_then(|layer| layer.num_parameters(4096)), ones(&[1, 4096])),
    ];
    for case in &vectors {
        let (_, copied) = measure(case, &slot);
        let (name, _, weight) = case;
        assert!(copied < *weight, "{name} has a weight of {weight} bytes, and copied {copied} at once");
    }
}
