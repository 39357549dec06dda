//! Derivatives against finite differences.

use super::engine::{Pass, grad};
use super::functional::{fresh, one_hot, tensors};
use crate::op::Output;
use crate::{Cause, DType, Error, Result, Tensor};
use std::borrow::Borrow;

/// How closely derivatives must agree with finite differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradCheck {
    /// How far inputs are moved, each way.
    pub step: f64,
    /// The difference that is allowed anywhere.
    pub atol: f64,
    /// The difference that is allowed as a share of the slope.
    pub rtol: f64,
}

impl Default for GradCheck {
    fn default() -> GradCheck {
        GradCheck { step: 1e-6, atol: 1e-5, rtol: 1e-3 }
    }
}

/// Compares the gradients of `f`, at those of `inputs` that require grad, with finite
/// differences. Inputs should be `f64`, and lie away from where `f` has a kink.
///
/// ```
/// use cresset_tensor::autograd::{GradCheck, gradcheck};
/// use cresset_tensor::Tensor;
///
/// let x = Tensor::new([0.5f64, -1.0])?.with_grad()?;
/// gradcheck(|x| x[0].tanh(), &[&x], GradCheck::default())?;
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If a slope differs: which output's, by which input, at which elements, and by how much.
pub fn gradcheck<O: Output>(
    f: impl Fn(&[Tensor]) -> Result<O>,
    inputs: &[impl Borrow<Tensor>],
    options: GradCheck,
) -> Result<()> {
    check("gradcheck", &|x| f(x).map(tensors), &fresh(inputs)?, options)
}

/// Compares the second gradients of `f` with finite differences of the first, at `inputs` and at
/// gradients of the outputs made up for the purpose.
///
/// # Errors
/// As [`gradcheck`], which is given the gradients of `f` as a function of the inputs and of
/// the gradients of the outputs.
pub fn gradgradcheck<O: Output>(
    f: impl Fn(&[Tensor]) -> Result<O>,
    inputs: &[impl Borrow<Tensor>],
    options: GradCheck,
) -> Result<()> {
    let f = |x: &[Tensor]| f(x).map(tensors);
    let mut all = fresh(inputs)?;
    for output in f(&all)?.iter().filter(|output| output.requires_grad()) {
        all.push(made_up(output)?.with_grad()?);
    }
    let first = |all: &[Tensor]| {
        let (x, sent) = all.split_at(inputs.len());
        let outputs = f(x)?;
        let outputs = outputs.iter().filter(|output| output.requires_grad());
        let roots: Vec<_> = outputs.zip(sent).map(|(output, sent)| (output, Some(sent))).collect();
        let wanted: Vec<&Tensor> = x.iter().filter(|x| x.requires_grad()).collect();
        let pass = Pass { create_graph: true, allow_unused: true, ..Pass::default() };
        Ok(grad(&roots, &wanted, pass)?.into_iter().flatten().collect())
    };
    check("gradgradcheck", &first, &all, options)
}

/// Numbers between -1 and 1 that follow no simple rule, as many as `like` has elements.
fn made_up(like: &Tensor) -> Result<Tensor> {
    let numbers: Vec<f64> = (0..like.numel()).map(|i| (12.9898 * (i as f64 + 1.0)).sin()).collect();
    Tensor::from_slice(&numbers, like.shape())?.to(like.device())?.to_dtype(like.dtype())
}

type Function<'a> = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'a;

fn check(op: &'static str, f: &Function<'_>, inputs: &[Tensor], options: GradCheck) -> Result<()> {
    if !inputs.iter().any(Tensor::requires_grad) {
        return Err(Error::new(Cause::Argument, op, "none of the inputs requires grad"));
    }
    let outputs = f(inputs)?;
    let any = outputs.iter().any(Tensor::requires_grad);
    for (i, input) in inputs.iter().enumerate().filter(|(_, input)| input.requires_grad()) {
        let slopes = differences(f, inputs, i, options.step)?;
        for (o, output) in outputs.iter().enumerate() {
            // Outputs without a gradient are constants, unless there are no others.
            if !output.dtype().is_float() || (any && !output.requires_grad()) {
                continue;
            }
            for at in 0..output.numel() {
                let gradient = by_graph(output, at, input)?;
                let expected = slopes.iter().map(|of_outputs| of_outputs[o][at]);
                let pair = gradient.into_iter().zip(expected).enumerate();
                if let Some((from, (found, expected))) =
                    pair.into_iter().find(|(_, pair)| !close(*pair, options))
                {
                    let text = format_args!(
                        "the slope of output {o} at element {at} by input {i} at element {from} is {found} by the graph, and {expected} by differences"
                    );
                    return Err(Error::new(Cause::Anomaly, op, text));
                }
            }
        }
    }
    Ok(())
}

fn close((found, expected): (f64, f64), options: GradCheck) -> bool {
    found == expected
        || (found.is_nan() && expected.is_nan())
        || (found - expected).abs() <= options.atol + options.rtol * expected.abs()
}

/// The gradient of one element of `output` by all elements of `input`.
fn by_graph(output: &Tensor, at: usize, input: &Tensor) -> Result<Vec<f64>> {
    let pass = Pass { retain_graph: true, allow_unused: true, ..Pass::default() };
    let gradient = match output.requires_grad() {
        true => grad(&[(output, Some(&one_hot(output, at)?))], &[input], pass)?.remove(0),
        false => None,
    };
    gradient.map_or_else(|| Ok(vec![0.0; input.numel()]), |gradient| numbers(&gradient))
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.detach()?.to_dtype(DType::F64)?.to_vec()
}

/// For each element of input `i`, the slopes of all elements of all outputs.
fn differences(f: &Function<'_>, inputs: &[Tensor], i: usize, step: f64) -> Result<Vec<Vec<Vec<f64>>>> {
    let at = numbers(&inputs[i])?;
    let moved = |element: usize, by: f64| -> Result<Vec<Vec<f64>>> {
        let mut values = at.clone();
        values[element] += by;
        let like = &inputs[i];
        let mut moved = inputs.to_vec();
        let values = Tensor::from_slice(&values, like.shape())?.to(like.device())?.to_dtype(like.dtype())?;
        moved[i] = values.with_grad()?;
        f(&moved)?.iter().map(numbers).collect()
    };
    let slopes = |element| -> Result<Vec<Vec<f64>>> {
        let (above, below) = (moved(element, step)?, moved(element, -step)?);
        let slope = |(above, below): (f64, f64)| (above - below) / (2.0 * step);
        let of_output =
            |(above, below): (Vec<f64>, Vec<f64>)| above.into_iter().zip(below).map(slope).collect();
        Ok(above.into_iter().zip(below).map(of_output).collect())
    };
    (0..at.len()).map(slopes).collect()
}
