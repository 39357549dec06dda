//! Random tensors. The generator counts rather than walks, so that a seed gives the same
//! numbers whatever the number of threads; all devices draw from the host's.

use crate::{Cause, DType, Device, Error, Options, Result, Tensor, To};
use cresset_kernels::ViewMut;
use cresset_kernels::random::Philox;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::LazyLock;

static GENERATOR: LazyLock<Mutex<Philox>> = LazyLock::new(|| Mutex::new(Philox::new(0, 0)));

thread_local! {
    /// What this thread draws from while it computes something again.
    static REPLAYED: RefCell<Option<Generator>> = const { RefCell::new(None) };
}

/// Where random numbers come from.
pub(crate) type Generator = Philox;

/// Starts the random numbers of this process anew from `seed`.
pub fn manual_seed(seed: u64) {
    *GENERATOR.lock() = Philox::new(seed, 0);
}

/// Where the random numbers of this process are: what they started from, and how many were drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomState {
    /// The seed.
    pub seed: u64,
    /// How many elements were drawn since.
    pub offset: u64,
}

/// Where random numbers are now; [`set_random_state`] comes back to it.
///
/// ```
/// use cresset_tensor::{Tensor, random_state, set_random_state};
///
/// let before = random_state();
/// let first = Tensor::rand([3], ())?.to_vec::<f32>()?;
/// set_random_state(before);
/// assert_eq!(Tensor::rand([3], ())?.to_vec::<f32>()?, first);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub fn random_state() -> RandomState {
    let generator = GENERATOR.lock();
    RandomState { seed: generator.seed(), offset: generator.offset() }
}

/// Lets random numbers go on from where they were at [`random_state`].
pub fn set_random_state(state: RandomState) {
    *GENERATOR.lock() = Philox::new(state.seed, state.offset);
}

/// Draws random numbers: all of them are drawn here.
fn draw_from<R>(draw: impl FnOnce(&mut Generator) -> R) -> R {
    REPLAYED.with_borrow_mut(|replayed| match replayed {
        Some(generator) => draw(generator),
        None => draw(&mut GENERATOR.lock()),
    })
}

/// The generator as it is now.
pub(crate) fn generator() -> Generator {
    draw_from(|generator| generator.clone())
}

/// Runs `f` with the numbers that `generator` gives. Those of everyone else go on undisturbed.
pub(crate) fn replay<R>(generator: Generator, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Generator>);
    impl Drop for Restore {
        fn drop(&mut self) {
            REPLAYED.replace(self.0.take());
        }
    }
    let _restore = Restore(REPLAYED.replace(Some(generator)));
    f()
}

impl Tensor {
    /// Uniform random numbers from 0 to 1, 1 excluded.
    pub fn rand(shape: impl AsRef<[usize]>, options: impl Into<Options>) -> Result<Tensor> {
        Tensor::uniform(0.0, 1.0, shape, options)
    }

    /// Uniform random numbers from `low` to `high`, `high` excluded.
    pub fn uniform(
        low: f64,
        high: f64,
        shape: impl AsRef<[usize]>,
        options: impl Into<Options>,
    ) -> Result<Tensor> {
        draw("aten::uniform", shape.as_ref(), options.into(), |generator, out| {
            generator.uniform(low, high, out)
        })
    }

    /// Normally distributed random numbers of mean 0 and deviation 1.
    pub fn randn(shape: impl AsRef<[usize]>, options: impl Into<Options>) -> Result<Tensor> {
        draw("aten::randn", shape.as_ref(), options.into(), |generator, out| generator.normal(0.0, 1.0, out))
    }

    /// Uniform random numbers from 0 to 1, 1 excluded, like this tensor but for what `to` says.
    pub fn rand_like(&self, to: impl Into<To>) -> Result<Tensor> {
        Tensor::rand(self.shape(), to.into().options(self))
    }

    /// Normally distributed random numbers of mean 0 and deviation 1, like this tensor but for
    /// what `to` says.
    pub fn randn_like(&self, to: impl Into<To>) -> Result<Tensor> {
        Tensor::randn(self.shape(), to.into().options(self))
    }

    /// Random integers from `low` to `high`, `high` excluded.
    pub fn randint(
        low: i64,
        high: i64,
        shape: impl AsRef<[usize]>,
        options: impl Into<Options>,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::randint";
        let options = options.into();
        if low >= high {
            let text = format_args!("there are no integers from {low} up to {high}");
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        let out =
            Tensor::uninit(shape.as_ref(), options.dtype, Device::CPU).map_err(|error| error.in_op(NAME))?;
        draw_from(|generator| generator.integers(low, high, out.elements_mut(&mut out.write())));
        out.to(options.device)
    }

    /// Random integers from `low` to `high`, `high` excluded, like this tensor but for what `to`
    /// says.
    pub fn randint_like(&self, low: i64, high: i64, to: impl Into<To>) -> Result<Tensor> {
        Tensor::randint(low, high, self.shape(), to.into().options(self))
    }

    /// `0, 1, … n - 1` in random order, as `i64`.
    pub fn randperm(n: usize) -> Result<Tensor> {
        // The memory is asked for first: whoever wants too much gets an error, not an abort.
        let out = Tensor::uninit(&[n], DType::I64, Device::CPU)?;
        let order = draw_from(|generator| generator.permutation(n));
        out.copy_(&Tensor::from_slice(&order, [n])?)?;
        Ok(out)
    }
}

fn draw(
    op: &'static str,
    shape: &[usize],
    options: Options,
    fill: impl FnOnce(&mut Philox, ViewMut<'_>),
) -> Result<Tensor> {
    if !options.dtype.is_float() {
        let text = format_args!("random numbers are floats, not {}", options.dtype);
        return Err(Error::new(Cause::DType, op, text));
    }
    let out = Tensor::uninit(shape, options.dtype, Device::CPU)?;
    draw_from(|generator| fill(generator, out.elements_mut(&mut out.write())));
    out.to(options.device)
}
