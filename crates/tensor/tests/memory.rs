//! What stays in memory: bytes are counted, so these tests run one after the other.

#[path = "reuse.rs"]
mod reuse;

use cresset_dispatch::memory::{Listener, Report, Slot};
use cresset_tensor::autograd::checkpoint;
use cresset_tensor::{Autocast, DType, Result, Tensor, autocast, host_bytes_allocated};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

const COUNT: usize = 1 << 15;
/// Bytes of one tensor.
const SIZE: u64 = 8 * COUNT as u64;

/// The largest total that was reported.
struct Peak(AtomicU64);

impl Listener for Peak {
    fn memory(&self, report: &Report) {
        self.0.fetch_max(report.allocated, Relaxed);
    }
}

static PEAK: Peak = Peak(AtomicU64::new(0));
static SLOT: LazyLock<Slot> = LazyLock::new(|| Slot::claim(&PEAK).expect("a slot is free"));

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many tensors were alive at most while `run` ran, in addition to those before.
fn tensors_at_most(run: impl FnOnce()) -> u64 {
    let before = host_bytes_allocated();
    PEAK.0.store(before, Relaxed);
    SLOT.set_active(true);
    run();
    SLOT.set_active(false);
    (PEAK.0.load(Relaxed) - before).div_ceil(SIZE)
}

/// How many tensors `run` leaves alive in what it returns.
fn tensors_left<R>(run: impl FnOnce() -> R) -> (u64, R) {
    let before = host_bytes_allocated();
    let result = run();
    ((host_bytes_allocated() - before).div_ceil(SIZE), result)
}

fn leaf() -> Tensor {
    Tensor::full([COUNT], 0.5, DType::F64).unwrap().with_grad().unwrap()
}

fn chain(x: &Tensor, length: usize, step: fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    (0..length).try_fold(x.clone(), |y, _| step(&y))
}

#[test]
fn gradients_in_between_are_let_go_as_soon_as_they_are_used() {
    let _alone = alone();
    let x = leaf();
    let y = chain(&x, 100, Tensor::neg).unwrap();
    let ones = y.ones_like().unwrap();
    assert!(tensors_at_most(|| y.backward_with(&ones).unwrap()) <= 3);
}

#[test]
fn what_is_kept_for_a_gradient_is_let_go_as_soon_as_it_is_used() {
    let _alone = alone();
    let x = leaf();
    let (kept, y) = tensors_left(|| chain(&x, 100, |y| y.tanh()?.sigmoid()).unwrap());
    assert!((200..=202).contains(&kept), "{kept}");
    let ones = y.ones_like().unwrap();
    assert!(tensors_at_most(|| y.backward_with(&ones).unwrap()) <= 3);
}

#[test]
fn a_graph_that_was_run_keeps_nothing() {
    let _alone = alone();
    let x = leaf();
    let (left, _graph) = tensors_left(|| {
        let y = chain(&x, 10, Tensor::exp).unwrap().sum().unwrap();
        y.backward().unwrap();
        x.clear_grad();
        y
    });
    assert_eq!(left, 1, "only the sum is left");
}

#[test]
fn a_product_keeps_no_factor_whose_other_gets_no_gradient() {
    let _alone = alone();
    let ones = |rows: usize| Tensor::ones([rows, 256], DType::F64).unwrap();
    let x = ones(COUNT / 256).with_grad().unwrap();
    let (frozen, weight) = (ones(256), ones(256).with_grad().unwrap());
    let left = |product: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let (left, y) = tensors_left(|| product(&x.mul(2.0)?));
        y.unwrap().sum().unwrap().backward().unwrap();
        left
    };
    assert_eq!(left(&|y| y.mm(&frozen)), 1, "of a matrix that gets none");
    assert_eq!(left(&|y| y.mul(&x.detach()?)), 1, "of a tensor that gets none");
    assert_eq!(left(&|y| y.div(&x.detach()?)), 1, "of a divisor that gets none");
    assert_eq!(left(&|y| y.mm(&weight)), 2, "of one that gets a gradient it is needed");
}

#[test]
fn a_checkpoint_keeps_its_inputs_and_computes_the_rest_again() {
    let _alone = alone();
    const SEGMENTS: usize = 8;
    const LENGTH: usize = 8;
    let segment = |x: &Tensor| chain(x, LENGTH, Tensor::tanh);
    let x = leaf();
    let (plain, y) = tensors_left(|| (0..SEGMENTS).try_fold(x.clone(), |y, _| segment(&y)).unwrap());
    drop(y);
    let checkpointed = || {
        (0..SEGMENTS).try_fold(x.clone(), |y, _| checkpoint(|y| chain(&y[0], LENGTH, Tensor::tanh), &[&y]))
    };
    let (kept, y) = tensors_left(|| checkpointed().unwrap());
    assert!(plain >= 64 && kept <= 10, "{plain} tensors without, {kept} with checkpoints");
    let ones = y.ones_like().unwrap();
    let most = tensors_at_most(|| y.backward_with(&ones).unwrap());
    assert!(most <= LENGTH as u64 + 4, "{most} tensors more than before the pass");
}

#[test]
fn a_parameter_is_cast_once_until_the_outermost_region_ends() -> Result<()> {
    let _alone = alone();
    let w = Tensor::ones([3, 3], ())?.with_grad()?;
    let x = Tensor::ones([2, 3], ())?;
    let before = host_bytes_allocated();
    autocast(DType::BF16, || {
        drop(x.linear(&w, None)?);
        let kept = host_bytes_allocated();
        assert!(kept > before, "the cast is kept");
        autocast(DType::BF16, || x.linear(&w, None).map(drop))?;
        drop(x.linear(&w, None)?);
        assert_eq!(host_bytes_allocated(), kept, "and used again");
        Ok(())
    })?;
    assert_eq!(host_bytes_allocated(), before, "nothing is left");
    let _unkept = Autocast::to(DType::BF16).keeps_casts(false).enter()?;
    drop(x.linear(&w, None)?);
    assert_eq!(host_bytes_allocated(), before, "unless casts are not to be kept");
    Ok(())
}
