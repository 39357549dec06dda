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
        let (count, weighting) = (self.count as f64, self.weighting);
        self.take(parameters, |average, parameter| match weighting {
            Weighting::Equal => average.lerp_(parameter, 1.0 / (count + 1.0)),
            Weighting::Decay(decay) => average.lerp_(parameter, 1.0 - decay),
        })
    }

    /// As [`update`](Average::update), by a rule of one's own: it is given an average, the present value
    /// and how many values were taken in, and gives the new average. Torch's `avg_fn`.
    ///
    /// # Errors
    /// As [`update`](Average::update), and if the rule fails.
    pub fn update_by(
        &mut self,
        parameters: &[Tensor],
        rule: impl Fn(&Tensor, &Tensor, u64) -> Result<Tensor>,
    ) -> Result<()> {
        let count = self.count;
        self.take(parameters, |average, parameter| average.copy_(&rule(average, parameter, count)?))
    }

    /// The first values as they are, and later ones as `change` says.
    fn take(&mut self, parameters: &[Tensor], change: impl Fn(&Tensor, &Tensor) -> Result<()>) -> Result<()> {
        check_count("Average", "parameters", parameters.len(), self.parameters.len())?;
        for (average, parameter) in self.parameters.iter().zip(parameters) {
            check_shape(parameter, average)?;
        }
        let _guard = no_grad();
        let _span = listed("aten::_foreach_lerp_", &self.parameters, &[]);
        for (average, parameter) in self.parameters.iter().zip(parameters) {
            let parameter = parameter.detach()?.to(average.device())?;
            // Counts of batches and their kind have no average.
            if self.count == 0 || !average.dtype().is_float() {
                average.copy_(&parameter)?;
            } else {
                change(average, &parameter)?;
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
        self.parameters.iter().zip(parameters).try_for_each(|(average, to)| check_shape(to, average))?;
        let _guard = no_grad();
        self.parameters.iter().zip(parameters).try_for_each(|(average, parameter)| parameter.copy_(average))
    }

    /// Goes on from averages and a count that were saved.
    ///
    /// # Errors
    /// If they are not as many, or not of the same shapes.
    pub fn load(&mut self, parameters: &[Tensor], count: u64) -> Result<()> {
        check_count("Average", "parameters", parameters.len(), self.parameters.len())?;
        self.parameters
            .iter()
            .zip(parameters)
            .try_for_each(|(average, saved)| check_shape(saved, average))?;
        let _guard = no_grad();
        self.parameters.iter().zip(parameters).try_for_each(|(average, saved)| average.copy_(saved))?;
        self.count = count;
        Ok(())
    }
}

fn check_shape(parameter: &Tensor, average: &Tensor) -> Result<()> {
    if parameter.shape() == average.shape() {
        return Ok(());
    }
    let text = format_args!("a parameter has shape {:?}, expected {:?}", parameter.shape(), average.shape());
    Err(Error::new(Cause::Shape, "Average", text))
}
