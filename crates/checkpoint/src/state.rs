//! Everything that the next step depends on, besides the weights.

use cresset_optim::schedule::ScheduleState;
use cresset_optim::{GradScalerState, Optimizer, StateDict};
use cresset_tensor::{RandomState, Result, random_state, random_states};
use std::collections::BTreeMap;

/// Where a training run is.
#[derive(Clone, Debug, Default)]
pub struct TrainingState {
    /// How many steps were taken.
    pub step: u64,
    /// The epoch that the next batch belongs to.
    pub epoch: u64,
    /// The next batch of that epoch.
    pub batch: u64,
    /// Where random numbers of the host go on.
    pub random: RandomState,
    /// Where those of devices go on, by their names.
    pub device_random: BTreeMap<String, RandomState>,
    /// What the optimizer keeps, and its options.
    pub optimizer: StateDict,
    /// Where the learning rates are.
    pub schedule: Option<ScheduleState>,
    /// The scale of mixed precision.
    pub scaler: Option<GradScalerState>,
    /// What else a program wants to find again.
    pub notes: BTreeMap<String, String>,
}

impl TrainingState {
    /// The state after `step` steps of `optimizer`, with the random numbers of now.
    ///
    /// # Errors
    /// If a device cannot copy what the optimizer keeps.
    pub fn of(step: u64, optimizer: &dyn Optimizer) -> Result<TrainingState> {
        let optimizer = optimizer.state_dict()?;
        let devices = random_states().into_iter().filter(|(device, _)| !device.is_cpu());
        let device_random = devices.map(|(device, state)| (device.to_string(), state)).collect();
        let random = random_state();
        Ok(TrainingState { step, random, device_random, optimizer, ..TrainingState::default() })
    }
}
