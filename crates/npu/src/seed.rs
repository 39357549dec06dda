//! Where devices' random numbers begin, and where they are.

use crate::{check_device, device, device_count};
use cresset_tensor::{Device, RandomState, Result, manual_seed_on, random_state_of, set_random_state_of};

/// Starts the random numbers of `device` anew from `seed`. Those of the host, and of other devices, go on.
///
/// ```
/// # use cresset_npu::{Library, device, init, manual_seed};
/// # use cresset_tensor::Tensor;
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// manual_seed(7, device(0))?;
/// let first = Tensor::rand([4], device(0))?.to_vec::<f32>()?;
/// manual_seed(7, device(0))?;
/// assert_eq!(Tensor::rand([4], device(0))?.to_vec::<f32>()?, first);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If there is no such device.
pub fn manual_seed(seed: u64, device: Device) -> Result<()> {
    check_device(device)?;
    manual_seed_on(device, seed);
    Ok(())
}

/// Starts the random numbers of all NPUs anew from `seed`; `cresset_tensor::manual_seed` does so for the host too.
///
/// ```
/// # use cresset_npu::{Library, device, init, initial_seed, manual_seed_all};
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// manual_seed_all(9);
/// assert_eq!(initial_seed(device(0))?, 9);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub fn manual_seed_all(seed: u64) {
    (0..device_count()).for_each(|index| manual_seed_on(device(index as u8), seed));
}

/// What the random numbers of `device` started from; as [`manual_seed_all`].
///
/// # Errors
/// If there is no such device.
pub fn initial_seed(device: Device) -> Result<u64> {
    Ok(rng_state(device)?.seed)
}

/// Where the random numbers of `device` are: [`set_rng_state`] comes back to it, also in another process.
///
/// ```
/// # use cresset_npu::{Library, device, init, rng_state, set_rng_state};
/// # use cresset_tensor::Tensor;
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let before = rng_state(device(0))?;
/// let first = Tensor::randn([4], device(0))?.to_vec::<f32>()?;
/// set_rng_state(before, device(0))?;
/// assert_eq!(Tensor::randn([4], device(0))?.to_vec::<f32>()?, first);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If there is no such device.
pub fn rng_state(device: Device) -> Result<RandomState> {
    check_device(device)?;
    Ok(random_state_of(device))
}

/// Lets the random numbers of `device` go on from where they were at [`rng_state`].
///
/// # Errors
/// If there is no such device.
pub fn set_rng_state(state: RandomState, device: Device) -> Result<()> {
    check_device(device)?;
    set_random_state_of(device, state);
    Ok(())
}
