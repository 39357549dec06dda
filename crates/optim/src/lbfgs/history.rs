//! The last steps, and the direction that follows from them.

use crate::state::fitted;
use cresset_tensor::{Cause, DType, Error, Result, Tensor};
use std::collections::{BTreeMap, VecDeque};

/// What is kept between iterations.
#[derive(Default)]
pub(super) struct History {
    pub(super) evaluations: usize,
    pub(super) iterations: usize,
    /// How far the last direction was gone.
    pub(super) length: f64,
    direction: Option<Tensor>,
    grad: Option<Tensor>,
    steps: VecDeque<Step>,
    /// The scale of the first guess of the curvature.
    scale: f64,
}

/// A step and how it changed the gradient.
struct Step {
    change: Tensor,
    step: Tensor,
    /// One through the product of both.
    weight: f64,
}

/// The smallest curvature that is worth to be kept.
const CURVED: f64 = 1e-10;

impl History {
    /// The next direction, given the gradient.
    pub(super) fn direction(&mut self, grad: &Tensor, size: usize) -> Result<Tensor> {
        let direction = match (&self.direction, &self.grad) {
            (Some(last), Some(last_grad)) => {
                let (change, step) = (grad.sub(last_grad)?, last.mul(self.length)?);
                self.keep(change, step, size)?;
                self.bend(grad.neg()?)?
            }
            _ => {
                self.steps.clear();
                self.scale = 1.0;
                grad.neg()?
            }
        };
        self.grad = Some(grad.copy()?);
        self.direction = Some(direction.clone());
        Ok(direction)
    }

    fn keep(&mut self, change: Tensor, step: Tensor, size: usize) -> Result<()> {
        let product = dot(&change, &step)?;
        if product <= CURVED || size == 0 {
            return Ok(());
        }
        while self.steps.len() >= size {
            self.steps.pop_front();
        }
        self.scale = product / dot(&change, &change)?;
        self.steps.push_back(Step { change, step, weight: 1.0 / product });
        Ok(())
    }

    /// Turns the downhill direction by the curvature of the last steps.
    fn bend(&self, down: Tensor) -> Result<Tensor> {
        let mut shares = Vec::with_capacity(self.steps.len());
        for Step { change, step, weight } in self.steps.iter().rev() {
            let share = dot(step, &down)? * weight;
            down.add_scaled_(change, -share)?;
            shares.push(share);
        }
        let direction = down.mul(self.scale)?;
        for (Step { change, step, weight }, share) in self.steps.iter().zip(shares.iter().rev()) {
            let other = dot(change, &direction)? * weight;
            direction.add_scaled_(step, share - other)?;
        }
        Ok(direction)
    }

    pub(super) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let steps = self.steps.iter().flat_map(|step| [&step.change, &step.step]);
        self.direction.iter().chain(&self.grad).chain(steps)
    }

    pub(super) fn save(&self) -> Result<BTreeMap<String, Tensor>> {
        let mut saved = BTreeMap::new();
        let mut put =
            |name: String, tensor: Result<Tensor>| tensor.map(|tensor| drop(saved.insert(name, tensor)));
        if self.evaluations == 0 {
            return Ok(saved);
        }
        put("func_evals".to_owned(), Tensor::new(self.evaluations as f64))?;
        put("n_iter".to_owned(), Tensor::new(self.iterations as f64))?;
        put("t".to_owned(), Tensor::new(self.length))?;
        put("H_diag".to_owned(), Tensor::new(self.scale))?;
        if let (Some(direction), Some(grad)) = (&self.direction, &self.grad) {
            put("d".to_owned(), direction.copy())?;
            put("prev_flat_grad".to_owned(), grad.copy())?;
        }
        for (i, Step { change, step, weight }) in self.steps.iter().enumerate() {
            put(format!("old_dirs.{i}"), change.copy())?;
            put(format!("old_stps.{i}"), step.copy())?;
            put(format!("ro.{i}"), Tensor::new(*weight))?;
        }
        Ok(saved)
    }

    /// Reads what was saved, for `length` elements of the type and on the device of `parameter`.
    pub(super) fn load(
        saved: &BTreeMap<String, Tensor>,
        parameter: &Tensor,
        length: usize,
    ) -> Result<History> {
        let mut history = History::default();
        if saved.is_empty() {
            return Ok(history);
        }
        let number = |name: &str| find(saved, name)?.to_dtype(DType::F64)?.item().map(|item| item.as_f64());
        let tensor = |name: &str| {
            let tensor = find(saved, name)?;
            if tensor.shape() == [length] {
                return fitted(tensor, parameter);
            }
            let text = format_args!("{name} is {:?}, expected {:?}", tensor.shape(), [length]);
            Err(Error::new(Cause::Shape, "LBFGS", text))
        };
        history.evaluations = number("func_evals")? as usize;
        history.iterations = number("n_iter")? as usize;
        (history.length, history.scale) = (number("t")?, number("H_diag")?);
        if saved.contains_key("d") {
            history.direction = Some(tensor("d")?);
            history.grad = Some(tensor("prev_flat_grad")?);
        }
        for i in (0..).take_while(|i| saved.contains_key(&format!("old_dirs.{i}"))) {
            history.steps.push_back(Step {
                change: tensor(&format!("old_dirs.{i}"))?,
                step: tensor(&format!("old_stps.{i}"))?,
                weight: number(&format!("ro.{i}"))?,
            });
        }
        Ok(history)
    }
}

fn find<'a>(saved: &'a BTreeMap<String, Tensor>, name: &str) -> Result<&'a Tensor> {
    saved
        .get(name)
        .ok_or_else(|| Error::new(Cause::Argument, "LBFGS", format_args!("the state has no {name}")))
}

fn dot(a: &Tensor, b: &Tensor) -> Result<f64> {
    Ok(a.dot(b)?.item()?.as_f64())
}
