//! Regions of a thread in which calls are cast, and the casts of parameters that they keep.

use crate::autograd::{enable_grad, is_inference_mode};
use crate::{Cause, DType, Error, Key, Result, Tensor};
use cresset_dispatch::KeySet;
use cresset_dispatch::key::{self, ThreadKeys};
use cresset_kernels::Shared;
use std::cell::RefCell;
use std::collections::HashMap;

/// Runs `body` with autocast to `dtype` on this thread: products of matrices and convolutions are given
/// their inputs in `dtype`, losses and what else needs digits in `f32`, and tensors that are joined in the
/// widest type among them. All other operators take what they get. `f64` is left alone.
///
/// The lists are those of torch for its host. The backward pass belongs outside: each gradient has the type
/// of what it is the gradient of.
///
/// ```
/// use cresset_tensor::ops::Reduction;
/// use cresset_tensor::{DType, Tensor, autocast};
///
/// let x = Tensor::ones([2, 4], ())?;
/// let w = Tensor::ones([3, 4], ())?.with_grad()?;
/// let loss = autocast(DType::BF16, || {
///     let y = x.linear(&w, None)?;
///     assert_eq!(y.dtype(), DType::BF16);
///     y.mse_loss(&y.zeros_like()?, Reduction::Mean)
/// })?;
/// assert_eq!(loss.dtype(), DType::F32);
/// loss.backward()?;
/// assert_eq!(w.grad().map(|grad| grad.dtype()), Some(DType::F32));
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// A parameter is cast once: the cast is kept until the outermost region ends, or the parameter is changed.
///
/// # Errors
/// What `body` says; a `dtype` other than `bf16` and `f16`.
pub fn autocast<T>(dtype: DType, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let _guard = Autocast::to(dtype).enter()?;
    body()
}

/// Runs `body` without autocast, inside a region that has it.
///
/// ```
/// use cresset_tensor::{DType, Tensor, autocast, without_autocast};
///
/// let x = Tensor::ones([2, 2], ())?;
/// autocast(DType::BF16, || {
///     assert_eq!(x.mm(&x)?.dtype(), DType::BF16);
///     assert_eq!(without_autocast(|| x.mm(&x))?.dtype(), DType::F32);
///     Ok(())
/// })?;
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub fn without_autocast<R>(body: impl FnOnce() -> R) -> R {
    let _guard = Autocast::OFF.begin();
    body()
}

/// What a region does; [`enter`](Autocast::enter) begins it. [`autocast`] is the short form.
///
/// ```
/// use cresset_tensor::{Autocast, DType, Tensor};
///
/// let x = Tensor::ones([2, 2], ())?;
/// let guard = Autocast::to(DType::F16).enter()?;
/// assert_eq!(x.mm(&x)?.dtype(), DType::F16);
/// drop(guard);
/// assert_eq!(x.mm(&x)?.dtype(), DType::F32);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Autocast {
    dtype: DType,
    enabled: bool,
    keeps: bool,
}

impl Autocast {
    const OFF: Autocast = Autocast { dtype: DType::BF16, enabled: false, keeps: true };

    /// Autocast to `dtype`, which is `bf16` or `f16`.
    pub fn to(dtype: DType) -> Autocast {
        Autocast { dtype, enabled: true, keeps: true }
    }

    /// Whether calls are cast at all. A region inside another can be one that casts nothing.
    pub fn enabled(self, enabled: bool) -> Autocast {
        Autocast { enabled, ..self }
    }

    /// Whether casts of parameters are kept for the next use. On unless said otherwise.
    pub fn keeps_casts(self, keeps: bool) -> Autocast {
        Autocast { keeps, ..self }
    }

    /// What applies to calls on this thread now.
    pub fn here() -> Autocast {
        let enabled = is_on();
        REGIONS.with_borrow(|regions| Autocast { enabled, ..regions.current() })
    }

    /// Whether calls are cast.
    pub fn is_enabled(self) -> bool {
        self.enabled
    }

    /// Begins a region on this thread that ends when the guard drops. Guards may drop in any order.
    ///
    /// # Errors
    /// A `dtype` other than `bf16` and `f16`, unless the region casts nothing.
    pub fn enter(self) -> Result<AutocastGuard> {
        if self.enabled && !matches!(self.dtype, DType::BF16 | DType::F16) {
            let text = format_args!("cannot cast to {}; bf16 and f16 can be cast to", self.dtype);
            return Err(Error::new(Cause::DType, "autocast", text));
        }
        Ok(self.begin())
    }

    pub(crate) fn begin(self) -> AutocastGuard {
        let number = REGIONS.with_borrow_mut(|regions| regions.begin(self));
        let keys = if self.enabled { key::include } else { key::exclude }(KeySet::AUTOCAST);
        AutocastGuard { number, _keys: keys }
    }
}

/// Guard of [`Autocast::enter`]: ends the region.
#[must_use = "calls are cast only while the guard lives"]
pub struct AutocastGuard {
    number: u64,
    _keys: ThreadKeys,
}

impl Drop for AutocastGuard {
    fn drop(&mut self) {
        // A thread that ends has dropped its regions already.
        let ended = REGIONS.try_with(|regions| regions.borrow_mut().end(self.number));
        // Tensors drop when nothing is borrowed any more.
        drop(ended);
    }
}

/// Whether calls on this thread are cast.
#[inline]
pub(crate) fn is_on() -> bool {
    !key::excluded().contains(Key::AUTOCAST)
}

/// The lower precision of this thread's region.
pub(super) fn lower() -> DType {
    REGIONS.with_borrow(|regions| regions.current().dtype)
}

/// The cast of `tensor` to `to`: of a parameter the one that is kept, if there is one.
///
/// What is kept is recorded even where nothing else is, so that a first use without gradients does
/// not cost a later one its own.
pub(super) fn kept(tensor: &Tensor, to: DType, cast: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
    if !REGIONS.with_borrow(|regions| regions.keeps(tensor, to)) {
        return cast();
    }
    if let Some(cast) = REGIONS.with_borrow(|regions| regions.find(tensor, to)) {
        return Ok(cast);
    }
    let _recorded = enable_grad();
    let cast = cast()?;
    let replaced = REGIONS.with_borrow_mut(|regions| regions.keep(tensor, &cast));
    drop(replaced);
    Ok(cast)
}

thread_local! {
    static REGIONS: RefCell<Regions> = RefCell::default();
}

/// The regions that a thread is in, the innermost last.
#[derive(Default)]
struct Regions {
    open: Vec<(u64, Autocast)>,
    begun: u64,
    casts: Casts,
}

/// Casts of parameters by where the parameter is and what it was cast to.
type Casts = HashMap<(usize, DType), Kept>;

struct Kept {
    /// Holds the address: no other tensor gets it while this is kept.
    _parameter: Tensor,
    version: u64,
    cast: Tensor,
}

impl Regions {
    fn current(&self) -> Autocast {
        self.open.last().map_or(Autocast::OFF, |(_, region)| *region)
    }

    fn begin(&mut self, region: Autocast) -> u64 {
        self.begun += 1;
        self.open.push((self.begun, region));
        self.begun
    }

    /// Ends a region; gives the casts that nobody needs any more.
    fn end(&mut self, number: u64) -> Casts {
        self.open.retain(|(one, _)| *one != number);
        if self.open.is_empty() { std::mem::take(&mut self.casts) } else { Casts::new() }
    }

    fn keeps(&self, tensor: &Tensor, to: DType) -> bool {
        let region = self.current();
        let is_parameter = || tensor.requires_grad() && tensor.is_leaf() && tensor.0.view.is_none();
        region.keeps
            && (tensor.dtype(), to) == (DType::F32, region.dtype)
            && is_parameter()
            && !is_inference_mode()
    }

    fn find(&self, tensor: &Tensor, to: DType) -> Option<Tensor> {
        let kept = self.casts.get(&(Shared::address(&tensor.0), to))?;
        (kept.version == tensor.storage().version()).then(|| kept.cast.clone())
    }

    fn keep(&mut self, tensor: &Tensor, cast: &Tensor) -> Option<Kept> {
        let kept =
            Kept { _parameter: tensor.clone(), version: tensor.storage().version(), cast: cast.clone() };
        self.casts.insert((Shared::address(&tensor.0), cast.dtype()), kept)
    }
}
