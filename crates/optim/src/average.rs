//! Averages of parameters over time.

use crate::descent::check_count;
use crate::scope::listed;
use cresset_tensor::{Cause, Error, Result, Tensor, no_grad};

/// How a new value is taken into an average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weighting {
    /// All count the same: stochastic weight averaging.
    Equal,
    /// The average keeps this share of itself: an exponential moving average.
    Decay(f64),
}

/// The average of where parameters have been.
///
/// ```
/// use cresset_optim::Tensor;
/// use cresset_optim::average::{Average, Weighting};
///
/// let weight = Tensor::new([1.0f32])?;
/// let mut average = Average::new(&[weight.clone()], Weighting::Equal)?;
/// for value in [1.0, 2.0, 6.0] {
///     weight.fill_(value)?;
///     average.update(&[weight.clone()])?;
/// }
/// assert_eq!(average.parameters()[0].to_vec::<f32>()?, [3.0]);
/// # Ok::<(), cresset_optim::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Average {
    weighting: Weighting,
    parameters: Vec<Tensor>,
    count: u64,
}

impl Average {
    /// An average that starts as a copy of `parameters`; the first [`update`](Average::update) replaces it.
    ///
    /// # Errors
    /// If a decay is not from 0 to 1.
    pub fn new(parameters: &[Tensor], weighting: Weighting) -> Result<Average> {
        if let Weighting::Decay(decay) = weighting {
            let allowed = (0.0..=1.0).contains(&decay);
            crate::value::check("Average", "decay", decay, allowed, "from 0 to 1")?;
        }
        let _guard = no_grad();
        let copy = |parameter: &Tensor| parameter.detach()?.copy();
        let parameters = parameters.iter().map(copy).collect::<Result<_>>()?;
        Ok(Average { weighting, parameters, count: 0 })
    }

    /// Takes the present values of `parameters` into the average.
    ///
    /// # Errors
    /// If they are not as many, or not of the same shapes, as when it was made.
    pub fn update(&mut self, parameters: &[Tensor]) -> Result<()> {
        check_count("Average", "parameters", parameters.len(), self.parameters.len())?;
        for (average, parameter) in self.parameters.iter().zip(parameters) {
            if average.shape() != parameter.shape() {
                let text = format_args!(
                    "a parameter has shape {:?}, expected {:?}",
                    parameter.shape(),
                    average.shape()
                );
                return Err(Error::new(Cause::Shape, "Average", text));
            }
        }
        let _guard = no_grad();
        let (count, weighting) = (self.count as f64, self.weighting);
        let _span = listed("aten::_foreach_lerp_", &self.parameters, &[]);
        for (average, parameter) in self.parameters.iter().zip(parameters) {
            let parameter = parameter.detach()?.to(average.device())?;
            match weighting {
                _ if self.count == 0 || !average.dtype().is_float() => average.copy_(&parameter)?,
                Weighting::Equal => average.lerp_(&parameter, 1.0 / (count + 1.0))?,
                Weighting::Decay(decay) => average.lerp_(&parameter, 1.0 - decay)?,
            }
        }
        self.count += 1;
        Ok(())
    }

    /// The averages, in the order of the parameters.
    pub fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    /// How many values were taken in.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes the averages into `parameters`.
    ///
    /// # Errors
    /// If they are not as many, or not of the same shapes.
    pub fn copy_to(&self, parameters: &[Tensor]) -> Result<()> {
        check_count("Average", "parameters", parameters.len(), self.parameters.len())?;
        let _guard = no_grad();
        self.parameters.iter().zip(parameters).try_for_each(|(average, parameter)| parameter.copy_(average))
    }

    /// Goes on from averages and a count that were saved.
    ///
    /// # Errors
    /// If they are not as many, or not of the same shapes.
    pub fn load(&mut self, parameters: &[Tensor], count: u64) -> Result<()> {
        check_count("Average", "parameters", parameters.len(), self.parameters.len())?;
        let _guard = no_grad();
        self.parameters.iter().zip(parameters).try_for_each(|(average, saved)| average.copy_(saved))?;
        self.count = count;
        Ok(())
    }
}
