//! Random tensors. The generators count rather than walk, so that a seed gives the same
//! numbers whatever the number of threads. The host has one, and every device that makes numbers of its
//! own another; what a device makes of a seed is its own affair.

use crate::backend::{self, Random};
use crate::{Cause, DType, Device, Error, Options, Result, Tensor, To, autograd, composite, shown};
use cresset_dispatch::observe::Argument;
use cresset_dispatch::site;
use cresset_kernels::ViewMut;
use cresset_kernels::random::Philox;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

static GENERATOR: LazyLock<Mutex<Generator>> = LazyLock::new(|| Mutex::new(Generator::new(0)));

thread_local! {
    /// What this thread draws from while it computes something again.
    static REPLAYED: RefCell<Option<Generator>> = const { RefCell::new(None) };
}

/// Where random numbers come from: those of the host, and those of devices.
#[derive(Clone)]
pub(crate) struct Generator {
    host: Philox,
    /// Devices that have drawn, or were told where to begin.
    devices: BTreeMap<Device, RandomState>,
    /// What all others begin with.
    seed: u64,
}

/// How far apart the counters of two calls of a device are: more than the rounds that a number may take.
const STEP: u64 = 12;

impl Generator {
    fn new(seed: u64) -> Generator {
        Generator { host: Philox::new(seed, 0), devices: BTreeMap::new(), seed }
    }

    fn of(&mut self, device: Device) -> &mut RandomState {
        let seed = self.seed;
        self.devices.entry(device).or_insert(RandomState { seed, offset: 0 })
    }

    fn state(&mut self, device: Device) -> RandomState {
        match device {
            Device::CPU => RandomState { seed: self.host.seed(), offset: self.host.offset() },
            device => *self.of(device),
        }
    }

    fn set(&mut self, device: Device, state: RandomState) {
        match device {
            Device::CPU => self.host = Philox::new(state.seed, state.offset),
            device => *self.of(device) = state,
        }
    }
}

/// Starts the random numbers of this process anew from `seed`, those of all devices too.
pub fn manual_seed(seed: u64) {
    *GENERATOR.lock() = Generator::new(seed);
}

/// Starts the random numbers of one device anew from `seed`.
///
/// ```
/// use cresset_tensor::{Device, Tensor, manual_seed_on};
/// manual_seed_on(Device::CPU, 7);
/// let first = Tensor::rand([3], ())?.to_vec::<f32>()?;
/// manual_seed_on(Device::CPU, 7);
/// assert_eq!(Tensor::rand([3], ())?.to_vec::<f32>()?, first);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub fn manual_seed_on(device: Device, seed: u64) {
    set_random_state_of(device, RandomState { seed, offset: 0 });
}

/// Where the random numbers of the host or of a device are: what they started from, and how many were
/// drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomState {
    /// The seed.
    pub seed: u64,
    /// How many elements were drawn since; devices count otherwise.
    pub offset: u64,
}

/// Where random numbers of the host are now; [`set_random_state`] comes back to it.
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
    random_state_of(Device::CPU)
}

/// Lets random numbers of the host go on from where they were at [`random_state`].
pub fn set_random_state(state: RandomState) {
    set_random_state_of(Device::CPU, state);
}

/// As [`random_state`], of a device.
pub fn random_state_of(device: Device) -> RandomState {
    GENERATOR.lock().state(device)
}

/// As [`set_random_state`], of a device.
pub fn set_random_state_of(device: Device, state: RandomState) {
    GENERATOR.lock().set(device, state);
}

/// Where the random numbers of the host and of all devices are now, the host first.
///
/// ```
/// use cresset_tensor::{Device, random_state, random_states};
/// assert_eq!(random_states()[0], (Device::CPU, random_state()));
/// ```
pub fn random_states() -> Vec<(Device, RandomState)> {
    let mut generator = GENERATOR.lock();
    let devices = std::iter::once(Device::CPU).chain(backend::devices());
    devices.map(|device| (device, generator.state(device))).collect()
}

/// Draws random numbers: all of them are drawn here.
fn draw_from<R>(draw: impl FnOnce(&mut Generator) -> R) -> R {
    REPLAYED.with_borrow_mut(|replayed| match replayed {
        Some(generator) => draw(generator),
        None => draw(&mut GENERATOR.lock()),
    })
}

/// Where the next numbers of a device begin.
fn draw_state(device: Device) -> RandomState {
    draw_from(|generator| {
        let state = generator.of(device);
        let now = *state;
        state.offset = state.offset.wrapping_add(STEP);
        now
    })
}

/// The generators as they are now.
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
        let numbers = Random::Uniform { low, high };
        draw("aten::uniform", shape.as_ref(), options.into(), numbers, |generator, out| {
            generator.uniform(low, high, out)
        })
    }

    /// Normally distributed random numbers of mean 0 and deviation 1.
    pub fn randn(shape: impl AsRef<[usize]>, options: impl Into<Options>) -> Result<Tensor> {
        let numbers = Random::Normal { mean: 0.0, std: 1.0 };
        draw("aten::randn", shape.as_ref(), options.into(), numbers, |generator, out| {
            generator.normal(0.0, 1.0, out)
        })
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

    /// Overwrites this tensor with 1, with a probability, and with 0 otherwise.
    ///
    /// # Errors
    /// If the probability is not from 0 to 1, or gradients flow through this tensor.
    pub fn bernoulli_(&self, probability: f64) -> Result<()> {
        const NAME: &str = "aten::bernoulli_";
        let more = [Argument::Float(probability), Argument::None];
        shown::within(NAME, [self], &more, || {
            if !(0.0..=1.0).contains(&probability) {
                let text = format_args!("a probability is from 0 to 1, not {probability}");
                return Err(Error::new(Cause::Argument, NAME, text));
            }
            if autograd::records_change(self.keys(), self) {
                return Err(Error::new(
                    Cause::Graph,
                    NAME,
                    "random numbers have no gradient; call it under no_grad()",
                ));
            }
            match self.device() {
                Device::META => {}
                Device::CPU => draw_from(|generator| {
                    generator.host.bernoulli(probability, self.elements_mut(&mut self.write()));
                }),
                device if self.is_kept_by(device, 1.0 - probability)? => {}
                device => {
                    self.copy_(&Tensor::kept(1.0 - probability, self.shape(), (self.dtype(), device))?)?;
                }
            }
            self.storage().changed(NAME);
            Ok(self.clone())
        })
        .map(drop)
    }

    /// Lets `device` overwrite this tensor itself; false if it cannot, or elements lie with gaps.
    fn is_kept_by(&self, device: Device, dropped: f64) -> Result<bool> {
        let _site = site::enter("aten::bernoulli_");
        let is_made = || backend::of(device)?.random(self, Random::Kept { dropped }, draw_state(device));
        Ok(self.numel() == 0 || (self.is_contiguous() && is_made()?))
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
        if let Some(out) = on_device(shape.as_ref(), options, Random::Integers { low, high })? {
            return Ok(out);
        }
        let out =
            Tensor::uninit(shape.as_ref(), options.dtype, Device::CPU).map_err(|error| error.in_op(NAME))?;
        draw_from(|generator| generator.host.integers(low, high, out.elements_mut(&mut out.write())));
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
        let order = draw_from(|generator| generator.host.permutation(n));
        out.copy_(&Tensor::from_slice(&order, [n])?)?;
        Ok(out)
    }

    /// As [`randperm`](Tensor::randperm), on a device.
    pub fn randperm_on(n: usize, device: Device) -> Result<Tensor> {
        match on_device(&[n], (DType::I64, device).into(), Random::Permutation)? {
            Some(out) => Ok(out),
            None => Tensor::randperm(n)?.to(device),
        }
    }

    /// Ones, each a zero with probability `dropped`: what a tensor is multiplied by to leave elements out.
    ///
    /// ```
    /// # use cresset_tensor::Tensor;
    /// let kept = Tensor::kept(0.25, [10_000], ())?.mean()?.item()?.as_f64();
    /// assert!((kept - 0.75).abs() < 0.03);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn kept(dropped: f64, shape: impl AsRef<[usize]>, options: impl Into<Options>) -> Result<Tensor> {
        let options = options.into();
        if let Some(out) = on_device(shape.as_ref(), options, Random::Kept { dropped })? {
            return Ok(out);
        }
        // Whatever the element type, the share of what is kept is that of single precision.
        Tensor::rand(shape, options.device)?.ge(dropped)?.to(options.dtype)
    }
}

fn draw(
    op: &'static str,
    shape: &[usize],
    options: Options,
    numbers: Random,
    fill: impl FnOnce(&mut Philox, ViewMut<'_>),
) -> Result<Tensor> {
    if !options.dtype.is_float() {
        let text = format_args!("random numbers are floats, not {}", options.dtype);
        return Err(Error::new(Cause::DType, op, text));
    }
    if let Some(out) = on_device(shape, options, numbers)? {
        return Ok(out);
    }
    let out = Tensor::uninit(shape, options.dtype, Device::CPU)?;
    draw_from(|generator| fill(&mut generator.host, out.elements_mut(&mut out.write())));
    out.to(options.device)
}

/// Numbers that a device makes itself; `None` if it does not.
fn on_device(shape: &[usize], options: Options, numbers: Random) -> Result<Option<Tensor>> {
    let Options { dtype, device, .. } = options;
    if matches!(device, Device::CPU | Device::META) {
        return Ok(None);
    }
    let backend = backend::of(device)?;
    let out = Tensor::uninit(shape, dtype, device)?;
    let (name, arguments) = match numbers {
        Random::Uniform { low, high } => ("aten::uniform_", [Argument::Float(low), Argument::Float(high)]),
        Random::Normal { mean, std } => ("aten::normal_", [Argument::Float(mean), Argument::Float(std)]),
        Random::Integers { low, high } => ("aten::random_", [Argument::Int(low), Argument::Int(high)]),
        Random::Kept { dropped } => ("aten::bernoulli_", [Argument::Float(1.0 - dropped), Argument::None]),
        Random::Permutation => ("aten::randperm", [Argument::None, Argument::None]),
    };
    let _span = composite(name, [&out], |visit| arguments.into_iter().for_each(visit));
    let _site = site::enter(name);
    let made = out.numel() == 0 || backend.random(&out, numbers, draw_state(device))?;
    Ok(made.then_some(out))
}
