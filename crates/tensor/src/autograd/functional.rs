//! Derivatives of functions, rather than of tensors that were computed.
//!
//! A function takes and gives tensors; each helper calls it with inputs of its own, so that no
//! leaf's gradient changes. Where `create_graph` is set, results have gradients themselves.

use super::engine::{Pass, grad};
use super::mode::enable_grad;
use crate::op::Output;
use crate::{Cause, Error, Result, Tensor};
use std::borrow::Borrow;

/// The slope of every element of every output by every element of every input: by output, then
/// by input, a tensor of the output's dimensions followed by the input's.
pub fn jacobian<O: Output>(
    f: impl Fn(&[Tensor]) -> Result<O>,
    inputs: &[impl Borrow<Tensor>],
    create_graph: bool,
) -> Result<Vec<Vec<Tensor>>> {
    let _recorded = enable_grad();
    let inputs = prepare(inputs, create_graph)?;
    let outputs = tensors(f(&inputs)?);
    outputs.iter().map(|output| slopes(output, &inputs, create_graph)).collect()
}

fn slopes(output: &Tensor, inputs: &[Tensor], create_graph: bool) -> Result<Vec<Tensor>> {
    let mut rows = vec![Vec::with_capacity(output.numel()); inputs.len()];
    for at in 0..output.numel() {
        let gradients = pull(&[(output, &one_hot(output, at)?)], inputs, create_graph)?;
        rows.iter_mut().zip(gradients).for_each(|(rows, gradient)| rows.push(gradient));
    }
    let shape = |input: &Tensor| [output.shape(), input.shape()].concat();
    inputs.iter().zip(rows).map(|(input, rows)| pile(&rows, input, &shape(input))).collect()
}

/// The slopes of the slopes of a function that gives a single number: by input, then by input
/// again, a tensor of the dimensions of both.
///
/// # Errors
/// If the output is not a single number.
pub fn hessian(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[impl Borrow<Tensor>],
    create_graph: bool,
) -> Result<Vec<Vec<Tensor>>> {
    jacobian(|x| gradient("hessian", &f, x).map(|(_, gradient)| gradient), inputs, create_graph)
}

/// The outputs, and the products of a vector per output with the slopes: a gradient per input.
///
/// # Errors
/// If the vectors do not look like the outputs.
pub fn vjp<O: Output>(
    f: impl Fn(&[Tensor]) -> Result<O>,
    inputs: &[impl Borrow<Tensor>],
    vectors: &[impl Borrow<Tensor>],
    create_graph: bool,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let _recorded = enable_grad();
    let inputs = prepare(inputs, create_graph)?;
    let outputs = tensors(f(&inputs)?);
    check_vectors("vjp", "output", &outputs, vectors)?;
    let roots: Vec<_> = outputs.iter().zip(vectors.iter().map(Borrow::borrow)).collect();
    let gradients = pull(&roots, &inputs, create_graph)?;
    Ok((finish(outputs, create_graph)?, gradients))
}

/// The outputs, and the products of the slopes with a vector per input: how each output changes as
/// the inputs move along.
///
/// A gradient is linear in what is sent back, so its own gradient by that is the product.
///
/// # Errors
/// If the vectors do not look like the inputs.
pub fn jvp<O: Output>(
    f: impl Fn(&[Tensor]) -> Result<O>,
    inputs: &[impl Borrow<Tensor>],
    vectors: &[impl Borrow<Tensor>],
    create_graph: bool,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let _recorded = enable_grad();
    check_vectors("jvp", "input", inputs, vectors)?;
    let inputs = prepare(inputs, create_graph)?;
    let outputs = tensors(f(&inputs)?);
    let sent = outputs.iter().map(|output| output.zeros_like()?.with_grad()).collect::<Result<Vec<_>>>()?;
    let roots: Vec<_> = outputs.iter().zip(&sent).collect();
    let gradients = pull(&roots, &inputs, true)?;
    let roots: Vec<_> = gradients.iter().zip(vectors.iter().map(Borrow::borrow)).collect();
    let changes = pull(&roots, &sent, create_graph)?;
    Ok((finish(outputs, create_graph)?, changes))
}

/// The output of a function that gives a single number, and the product of its second slopes with
/// a vector per input.
///
/// # Errors
/// If the output is not a single number, or the vectors do not look like the inputs.
pub fn hvp(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[impl Borrow<Tensor>],
    vectors: &[impl Borrow<Tensor>],
    create_graph: bool,
) -> Result<(Tensor, Vec<Tensor>)> {
    let with_output = |x: &[Tensor]| gradient("hvp", &f, x);
    second(with_output, |gradient| jvp(gradient, inputs, vectors, create_graph), create_graph)
}

/// The output of a function that gives a single number, and the product of a vector per input with
/// its second slopes. Cheaper than [`hvp`], and the same where the slopes are smooth.
///
/// # Errors
/// If the output is not a single number, or the vectors do not look like the inputs.
pub fn vhp(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[impl Borrow<Tensor>],
    vectors: &[impl Borrow<Tensor>],
    create_graph: bool,
) -> Result<(Tensor, Vec<Tensor>)> {
    let with_output = |x: &[Tensor]| gradient("vhp", &f, x);
    second(with_output, |gradient| vjp(gradient, inputs, vectors, create_graph), create_graph)
}

/// The product that `product` makes of a gradient as a function, and the output on the way.
fn second(
    gradient: impl Fn(&[Tensor]) -> Result<(Tensor, Vec<Tensor>)>,
    product: impl FnOnce(&dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Result<(Vec<Tensor>, Vec<Tensor>)>,
    create_graph: bool,
) -> Result<(Tensor, Vec<Tensor>)> {
    let output = std::cell::OnceCell::new();
    let (_, products) = product(&|x| {
        let (value, gradient) = gradient(x)?;
        let _ = output.set(value);
        Ok(gradient)
    })?;
    let output = output.into_inner().expect("the product called the gradient");
    Ok((finish(vec![output], create_graph)?.remove(0), products))
}

/// A single number, and its gradients by `x`, recorded.
fn gradient(
    op: &'static str,
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    x: &[Tensor],
) -> Result<(Tensor, Vec<Tensor>)> {
    let value = f(x)?;
    if value.numel() != 1 {
        let text = format_args!("the function gave shape {:?}, not a single number", value.shape());
        return Err(Error::new(Cause::Shape, op, text));
    }
    let ones = value.ones_like()?;
    let gradient = pull(&[(&value, &ones)], x, true)?;
    Ok((value, gradient))
}

/// Sends vectors back from `roots`; zeros for inputs that they do not depend on.
fn pull(roots: &[(&Tensor, &Tensor)], inputs: &[Tensor], create_graph: bool) -> Result<Vec<Tensor>> {
    let dependent = roots.iter().filter(|(root, _)| root.requires_grad());
    let roots: Vec<_> = dependent.map(|(root, vector)| (*root, Some(*vector))).collect();
    let wanted: Vec<&Tensor> = inputs.iter().collect();
    let pass = Pass { retain_graph: true, create_graph, allow_unused: true };
    let gradients = if roots.is_empty() { vec![None; inputs.len()] } else { grad(&roots, &wanted, pass)? };
    let zeros =
        |(gradient, input): (Option<Tensor>, &Tensor)| gradient.map_or_else(|| input.zeros_like(), Ok);
    gradients.into_iter().zip(inputs).map(zeros).collect()
}

/// Inputs to differentiate by: in their place in the graph if results are to have gradients, and
/// otherwise outside it.
fn prepare(inputs: &[impl Borrow<Tensor>], create_graph: bool) -> Result<Vec<Tensor>> {
    let prepare = |input: &Tensor| match create_graph && input.requires_grad() {
        true => input.view(input.shape()),
        false => input.detach()?.with_grad(),
    };
    inputs.iter().map(Borrow::borrow).map(prepare).collect()
}

/// Results outside the graph, unless they are to have gradients.
fn finish(outputs: Vec<Tensor>, create_graph: bool) -> Result<Vec<Tensor>> {
    if create_graph { Ok(outputs) } else { outputs.iter().map(Tensor::detach).collect() }
}

fn check_vectors(
    op: &'static str,
    what: &str,
    tensors: &[impl Borrow<Tensor>],
    vectors: &[impl Borrow<Tensor>],
) -> Result<()> {
    if tensors.len() != vectors.len() {
        let text = format_args!("{} vectors, expected one for each {what}: {}", vectors.len(), tensors.len());
        return Err(Error::new(Cause::Argument, op, text));
    }
    let mut pairs = tensors.iter().zip(vectors);
    pairs.try_for_each(|(tensor, vector)| tensor.borrow().check_gradient(op, vector.borrow()))
}

/// Tensors of the shape of `like` piled up to a tensor of `shape`.
fn pile(rows: &[Tensor], like: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let pile = Tensor::zeros([rows.len(), like.numel()], (like.dtype(), like.device()))?;
    for (i, row) in rows.iter().enumerate() {
        let count = row.numel();
        pile.as_strided(&[count], &[1], i * count)?.copy_(&row.reshape([count])?)?;
    }
    pile.view(shape)
}

/// Copies of `inputs` outside the graph; those that required grad do.
pub(super) fn fresh(inputs: &[impl Borrow<Tensor>]) -> Result<Vec<Tensor>> {
    let fresh = |input: &Tensor| {
        let copy = input.detach()?.copy()?;
        copy.set_requires_grad(input.requires_grad())?;
        Ok(copy)
    };
    inputs.iter().map(Borrow::borrow).map(fresh).collect()
}

/// A gradient that asks for one element of `output`.
pub(super) fn one_hot(output: &Tensor, at: usize) -> Result<Tensor> {
    let mut elements = vec![0.0f64; output.numel()];
    elements[at] = 1.0;
    Tensor::from_slice(&elements, output.shape())?.to(output.device())?.to_dtype(output.dtype())
}

/// All tensors of an output.
pub(super) fn tensors<O: Output>(output: O) -> Vec<Tensor> {
    let mut tensors = Vec::new();
    output.each(|tensor| tensors.push(tensor.clone()));
    tensors
}
