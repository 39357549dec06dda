//! Adafactor: squares of gradients kept by rows and columns.

use super::turned;
use crate::Implementation;
use crate::descent::{Algorithm, Descent, no_fused};
use crate::foreach::{count, each, map};
use crate::state::State;
use crate::value::{check as check_number, finite, not_negative, options};
use cresset_tensor::{DType, Error, Key, MemoryFormat, Result, Tensor};

options! {
    /// The numbers of [`Adafactor`].
    AdafactorOptions for "Adafactor", check {
        /// The learning rate, the most that a step may be relative to its parameter.
        lr: f64 = 1e-2,
        /// The power of the count of steps by which the mean of squares forgets.
        beta2_decay: f64 = -0.8,
        /// Keeps divisors away from 0 (the element type's epsilon if `None`), and steps of small parameters.
        eps: (Option<f64>, f64) = (None, 1e-3),
        /// The most that a step may be, as its root mean square.
        d: f64 = 1.0,
        /// How much the parameter decays, apart from the gradient.
        weight_decay: f64 = 0.0,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs, operator by operator or over lists; the former if `None`.
        implementation: Option<Implementation> = None,
    }
}

const EXPECTED: &str = "\"single\" or \"foreach\"";

fn check(options: &AdafactorOptions) -> Result<()> {
    let AdafactorOptions { lr, beta2_decay, eps: (eps1, eps2), d, weight_decay, .. } = *options;
    let eps1 = ("eps.0", eps1.unwrap_or(0.0));
    not_negative("Adafactor", &[("lr", lr), eps1, ("eps.1", eps2), ("weight_decay", weight_decay)])?;
    finite("Adafactor", &[("beta2_decay", beta2_decay), ("d", d)])?;
    check_number("Adafactor", "beta2_decay", beta2_decay, beta2_decay <= 0.0, "at most 0")?;
    check_number("Adafactor", "d", d, d >= 1.0, "at least 1")?;
    if options.implementation == Some(Implementation::Fused) {
        return Err(no_fused("Adafactor", EXPECTED));
    }
    Ok(())
}

/// Gradients scaled by means of squares of rows and columns, which need little memory.
pub type Adafactor = Descent<AdafactorOptions>;

const ROWS: &str = "row_var";
const COLUMNS: &str = "col_var";
const SQUARE: &str = "variance";

/// The distance from 1 to the next number of an element type.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => f64::from(f32::EPSILON),
    }
}

fn root_mean_square(tensor: &Tensor) -> Result<f64> {
    let norm = tensor.vector_norm(2.0, &[], false, None)?.item()?.as_f64();
    Ok(norm / (tensor.numel() as f64).sqrt())
}

/// Bounds elements from below, by the operator that torch calls for it.
fn at_least(tensor: &Tensor, least: f64) -> Result<()> {
    tensor.clamp_between_(Some(least.into()), None)
}

/// What is kept for a parameter.
enum Kept {
    Factors(Tensor, Tensor),
    Squares(Tensor),
}

impl AdafactorOptions {
    fn eps1(&self, parameter: &Tensor) -> f64 {
        self.eps.0.unwrap_or_else(|| epsilon(parameter.dtype()))
    }

    /// How much of the new squares is taken, and how long the step is.
    fn lengths(&self, parameter: &Tensor, count: f64) -> Result<(f64, f64)> {
        let relative = self.lr.min(1.0 / count.sqrt());
        Ok((count.powf(self.beta2_decay), self.eps.1.max(root_mean_square(parameter)?) * relative))
    }

    fn kept(state: &State) -> Result<Kept> {
        Ok(match state.find(SQUARE) {
            Some(square) => Kept::Squares(square.clone()),
            None => Kept::Factors(state.tensor(ROWS)?, state.tensor(COLUMNS)?),
        })
    }

    /// The estimate of the squares of a gradient.
    fn variance(&self, kept: &Kept, grad: &Tensor, fresh: f64, eps1: f64) -> Result<Tensor> {
        match kept {
            Kept::Squares(square) => {
                square.lerp_(&grad.mul(grad)?, fresh)?;
                square.copy_in(MemoryFormat::Preserve)
            }
            Kept::Factors(rows, columns) => {
                for (factor, dim) in [(rows, -1), (columns, -2)] {
                    let mean = grad.vector_norm(2.0, &[dim], true, None)?;
                    mean.square_()?;
                    mean.div_(grad.shape()[(grad.dim() as isize + dim) as usize] as i64)?;
                    factor.lerp_(&mean, fresh)?;
                }
                let estimate = rows.matmul(columns)?;
                let mean = rows.mean_dims(&[-2], true)?;
                at_least(&mean, eps1)?;
                estimate.div_(&mean)?;
                Ok(estimate)
            }
        }
    }

    fn move_by(&self, parameter: &Tensor, update: &Tensor, length: f64) -> Result<f64> {
        let most = (root_mean_square(update)? / self.d).max(1.0);
        let alpha = -length / most;
        parameter.add_scaled_(update, alpha)?;
        Ok(alpha)
    }
}

impl Algorithm for AdafactorOptions {
    const STEP: &'static str = "Optimizer.step#Adafactor.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#Adafactor.zero_grad";
    const TENSORS: &'static [&'static str] = &[ROWS, COLUMNS, SQUARE];
    type Rule = ();

    fn asked(&self) -> Option<Implementation> {
        self.implementation
    }

    /// Memory is what Adafactor is taken for, and lists of intermediate results need some.
    fn preferred(_key: Key) -> Implementation {
        Implementation::Single
    }

    fn first_tensor(&self, name: &'static str, parameter: &Tensor, _grad: &Tensor) -> Result<Tensor> {
        let mut shape = parameter.shape().to_vec();
        let last = shape.len();
        match name {
            ROWS if last > 1 => shape[last - 1] = 1,
            COLUMNS if last > 1 => shape[last - 2] = 1,
            _ => return parameter.zeros_like_with(MemoryFormat::Preserve),
        }
        parameter.new_zeros(shape, ())
    }

    fn prepare(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let names: &[&'static str] = if parameter.dim() > 1 { &[ROWS, COLUMNS] } else { &[SQUARE] };
        for &name in names {
            if state.find(name).is_none() {
                state.put(name, self.first_tensor(name, parameter, grad)?);
            }
        }
        Ok(())
    }

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let grad = turned(grad, self.maximize)?;
        state.numbers[0].count_traced()?;
        let (fresh, length) = self.lengths(parameter, state.numbers[0].item()?)?;
        if self.weight_decay != 0.0 {
            parameter.mul_(1.0 - self.lr * self.weight_decay)?;
        }
        let eps1 = self.eps1(parameter);
        let update = self.variance(&AdafactorOptions::kept(state)?, &grad, fresh, eps1)?;
        at_least(&update, eps1 * eps1)?;
        update.rsqrt_()?;
        update.mul_(&grad)?;
        self.move_by(parameter, &update, length).map(drop)
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        let grads =
            if self.maximize { map("aten::_foreach_neg", &grads, |_, grad| grad.neg())? } else { grads };
        let counts = count(states)?;
        let mut lengths = Vec::with_capacity(counts.len());
        for (parameter, &count) in parameters.iter().zip(&counts) {
            lengths.push(self.lengths(parameter, count)?);
        }
        if self.weight_decay != 0.0 {
            let kept = 1.0 - self.lr * self.weight_decay;
            each("aten::_foreach_mul_", parameters, |_, parameter| parameter.mul_(kept))?;
        }
        let mut updates = Vec::with_capacity(grads.len());
        for (i, grad) in grads.iter().enumerate() {
            let kept = AdafactorOptions::kept(states[i])?;
            updates.push(self.variance(&kept, grad, lengths[i].0, self.eps1(&parameters[i]))?);
        }
        each("aten::_foreach_clamp_min_", &updates, |i, update| {
            update.clamp_min_(self.eps1(&parameters[i]).powi(2))
        })?;
        each("aten::_foreach_rsqrt_", &updates, |_, update| update.rsqrt_())?;
        each("aten::_foreach_mul_", &updates, |i, update| update.mul_(&grads[i]))?;
        for ((parameter, update), length) in parameters.iter().zip(&updates).zip(&lengths) {
            self.move_by(parameter, update, length.1)?;
        }
        Ok(())
    }

    fn rule(&self, _state: &mut State) -> Result<()> {
        Err(fused_error())
    }

    fn fused(_tensors: &[Tensor], _rules: &[()], _steps: &[Tensor]) -> Result<()> {
        Err(fused_error())
    }
}

fn fused_error() -> Error {
    no_fused("Adafactor", EXPECTED)
}
