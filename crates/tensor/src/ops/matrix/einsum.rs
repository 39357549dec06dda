//! Sums of products written as subscripts: `"ij,jk->ik"`.
//!
//! Every subscript becomes an axis, those under an ellipsis too. All operands are brought to one
//! order of axes, what the output keeps first, and contracted from left to right by `bmm`.

use crate::{Argument, Cause, Error, Result, Tensor, composite, shown};
use cresset_kernels::Dims;

const NAME: &str = "aten::einsum";

/// One subscript of an operand or of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subscript {
    /// A dimension by its number, below 52: in equations `A` to `Z`, then `a` to `z`.
    Label(u8),
    /// All dimensions that no label stands for, broadcast.
    Ellipsis,
}

impl Tensor {
    /// The sum of products of `operands` that an equation such as `"ij,jk->ik"` says.
    ///
    /// A letter stands for a dimension. Where it is repeated in one operand the diagonal is taken,
    /// and what the output does not name is summed. `...` stands for all other dimensions, which
    /// broadcast. Without `->` the output has those, then all letters that occur once, sorted.
    ///
    /// ```
    /// # use cresset_tensor::{Result, Tensor};
    /// let (a, b) = (Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?, Tensor::new([1.0f32, 10.0])?);
    /// assert_eq!(Tensor::einsum("ij,j->i", &[&a, &b])?.to_vec::<f32>()?, [21.0, 43.0]);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    pub fn einsum(equation: &str, operands: &[&Tensor]) -> Result<Tensor> {
        let (inputs, output) = match equation.split_once("->") {
            Some((inputs, output)) => (inputs, Some(parse(equation, output)?)),
            None => (equation, None),
        };
        let inputs = inputs.split(',').map(|input| parse(equation, input)).collect::<Result<Vec<_>>>()?;
        Tensor::einsum_of(operands, &inputs, output.as_deref())
    }

    /// As [`einsum`](Tensor::einsum), with the subscripts of each operand and of the output in lists.
    pub fn einsum_of(
        operands: &[&Tensor],
        inputs: &[Vec<Subscript>],
        output: Option<&[Subscript]>,
    ) -> Result<Tensor> {
        let told: Vec<_> = operands.iter().map(|operand| operand.argument()).collect();
        let _span = composite(NAME, shown::NOTHING, |visit| {
            visit(Argument::None);
            visit(Argument::Tensors(&told));
            visit(Argument::None);
        });
        if operands.is_empty() || operands.len() != inputs.len() {
            let (given, named) = (operands.len(), inputs.len());
            return refused(format_args!("there are {given} operands, but subscripts for {named}"));
        }
        let axes = Axes::new(operands, inputs, output)?;
        let arranged =
            operands.iter().zip(&axes.inputs).map(|(operand, subscripts)| axes.arrange(operand, subscripts));
        axes.contract(arranged.collect::<Result<Vec<_>>>()?)
    }
}

fn refused<T>(text: std::fmt::Arguments<'_>) -> Result<T> {
    Err(Error::new(Cause::Argument, NAME, text))
}

fn parse(equation: &str, text: &str) -> Result<Vec<Subscript>> {
    let mut subscripts = Vec::new();
    let mut rest = text.trim_start();
    while let Some(letter) = rest.chars().next() {
        let (subscript, length) = match letter {
            'A'..='Z' => (Subscript::Label(letter as u8 - b'A'), 1),
            'a'..='z' => (Subscript::Label(letter as u8 - b'a' + 26), 1),
            '.' if rest.starts_with("...") => (Subscript::Ellipsis, 3),
            other => {
                return refused(format_args!(
                    "{other:?} in {equation:?} is no subscript: expected letters, `...`, and one `->` at most"
                ));
            }
        };
        subscripts.push(subscript);
        rest = rest[length..].trim_start();
    }
    Ok(subscripts)
}

/// Labels are axes by their number; the dimensions under ellipses follow.
const LABELS: usize = 52;

fn axis_name(axis: usize) -> String {
    match axis {
        0..26 => char::from(b'A' + axis as u8).to_string(),
        26..LABELS => char::from(b'a' + axis as u8 - 26).to_string(),
        _ => "...".to_owned(),
    }
}

/// What the subscripts say, as axes.
struct Axes {
    /// The axis of each dimension of each operand.
    inputs: Vec<Vec<usize>>,
    /// All axes in the order that operands are brought to.
    order: Vec<usize>,
    /// How many of these, from the first on, the output has.
    kept: usize,
}

impl Axes {
    fn new(operands: &[&Tensor], inputs: &[Vec<Subscript>], output: Option<&[Subscript]>) -> Result<Axes> {
        let mut hidden = Vec::new();
        for (operand, subscripts) in operands.iter().zip(inputs) {
            hidden.push(hidden_dims(operand, subscripts)?);
        }
        let most = hidden.iter().copied().max().unwrap_or(0);
        let expand = |subscripts: &[Subscript], hidden: usize| -> Vec<usize> {
            let axes = subscripts.iter().flat_map(|subscript| match *subscript {
                Subscript::Label(label) => label as usize..label as usize + 1,
                Subscript::Ellipsis => LABELS + most - hidden..LABELS + most,
            });
            axes.collect()
        };
        let inputs: Vec<Vec<usize>> =
            inputs.iter().zip(hidden).map(|(subscripts, hidden)| expand(subscripts, hidden)).collect();
        check_sizes(operands, &inputs)?;
        let mut order = match output {
            Some(output) => {
                check_output(output, &inputs)?;
                expand(output, most)
            }
            None => implied_output(&inputs, most),
        };
        let kept = order.len();
        let named = |axis: &usize| inputs.iter().flatten().any(|other| other == axis);
        let summed =
            (LABELS..LABELS + most).chain(0..LABELS).filter(|axis| named(axis) && !order.contains(axis));
        let summed: Vec<usize> = summed.collect();
        order.extend(summed);
        Ok(Axes { inputs, order, kept })
    }

    /// An operand with all axes, in order; those it does not have are of size 1.
    fn arrange(&self, operand: &Tensor, axes: &[usize]) -> Result<Tensor> {
        let mut x = operand.clone();
        // Where each axis of the order is in the operand so far.
        let mut places: Vec<Option<usize>> = vec![None; self.order.len()];
        let mut at = 0;
        let first_hidden = axes.iter().position(|&axis| axis >= LABELS);
        for (number, &axis) in axes.iter().enumerate() {
            if first_hidden == Some(number) {
                // Dimensions that other ellipses stand for and this one does not.
                for missing in LABELS..axis {
                    x = x.unsqueeze(at as isize)?;
                    self.place(&mut places, missing, at);
                    at += 1;
                }
            }
            match self.order.iter().position(|&other| other == axis).and_then(|place| places[place]) {
                // A diagonal stands last, and takes the place of the first of its dimensions.
                Some(before) => {
                    x = x.diagonal(0, before as isize, at as isize)?.movedim(&[-1], &[before as isize])?;
                }
                None => {
                    self.place(&mut places, axis, at);
                    at += 1;
                }
            }
        }
        for place in places.iter_mut().filter(|place| place.is_none()) {
            x = x.unsqueeze(at as isize)?;
            *place = Some(at);
            at += 1;
        }
        x.permute(&places.into_iter().flatten().map(|place| place as isize).collect::<Vec<_>>())
    }

    fn place(&self, places: &mut [Option<usize>], axis: usize, at: usize) {
        if let Some(place) = self.order.iter().position(|&other| other == axis) {
            places[place] = Some(at);
        }
    }

    /// Multiplies from left to right, and sums each axis as soon as nobody else has it.
    fn contract(&self, operands: Vec<Tensor>) -> Result<Tensor> {
        let summed = self.kept..self.order.len();
        let mut operands = operands.into_iter();
        let Some(mut product) = operands.next() else {
            return refused(format_args!("there are no operands"));
        };
        if operands.len() == 0 {
            let dims: Vec<isize> = summed.map(|dim| dim as isize).collect();
            return if dims.is_empty() { Ok(product) } else { product.sum_dims(&dims, false) };
        }
        while let Some(next) = operands.next() {
            let later = operands.as_slice();
            let last = |&dim: &usize| later.iter().all(|operand| operand.shape()[dim] == 1);
            let wide = |x: &Tensor, dim: usize| x.shape()[dim] != 1;
            let ready: Vec<usize> = summed.clone().filter(last).collect();
            let only = |a: &Tensor, b: &Tensor| -> Vec<isize> {
                ready.iter().filter(|&&dim| wide(a, dim) && !wide(b, dim)).map(|&dim| dim as isize).collect()
            };
            let (of_product, of_next) = (only(&product, &next), only(&next, &product));
            let both: Dims =
                ready.iter().copied().filter(|&dim| wide(&product, dim) && wide(&next, dim)).collect();
            product = sum_product(&presummed(&product, &of_product)?, &presummed(&next, &of_next)?, &both)?;
        }
        if summed.is_empty() {
            return Ok(product);
        }
        let shape = Dims::from_slice(&product.shape()[..self.kept]);
        product.view(shape)
    }
}

fn presummed(x: &Tensor, dims: &[isize]) -> Result<Tensor> {
    if dims.is_empty() { Ok(x.clone()) } else { x.sum_dims(dims, true) }
}

/// How many dimensions of an operand its ellipsis stands for.
fn hidden_dims(operand: &Tensor, subscripts: &[Subscript]) -> Result<usize> {
    let ellipses = subscripts.iter().filter(|&&subscript| subscript == Subscript::Ellipsis).count();
    if subscripts.iter().any(|subscript| matches!(subscript, Subscript::Label(52..))) {
        return refused(format_args!("labels are numbers below {LABELS}"));
    }
    let labels = subscripts.len() - ellipses;
    if ellipses > 1 || labels > operand.dim() || (ellipses == 0 && labels != operand.dim()) {
        return refused(format_args!(
            "{labels} labels and {ellipses} ellipses do not name the dimensions of shape {:?}",
            operand.shape()
        ));
    }
    Ok(operand.dim() - labels)
}

/// Sizes of one axis are equal within an operand, and broadcast between operands.
fn check_sizes(operands: &[&Tensor], inputs: &[Vec<usize>]) -> Result<()> {
    let mut sizes = std::collections::HashMap::<usize, usize>::new();
    for (operand, axes) in operands.iter().zip(inputs) {
        for (dim, (&axis, &size)) in axes.iter().zip(operand.shape()).enumerate() {
            let twice = axes[..dim].iter().position(|&before| before == axis);
            if twice.is_some_and(|before| operand.shape()[before] != size) {
                let name = axis_name(axis);
                return refused(format_args!("{name} is of two sizes in shape {:?}", operand.shape()));
            }
            let known = sizes.entry(axis).or_insert(size);
            if *known != size && *known != 1 && size != 1 {
                return refused(format_args!("{} is of sizes {known} and {size}", axis_name(axis)));
            }
            *known = if *known == 1 { size } else { *known };
        }
    }
    Ok(())
}

/// An output names each axis once, and none that no operand has.
fn check_output(output: &[Subscript], inputs: &[Vec<usize>]) -> Result<()> {
    for (at, subscript) in output.iter().enumerate() {
        if output[..at].contains(subscript) {
            return refused(format_args!("{subscript:?} is twice in the output"));
        }
        if let Subscript::Label(label) = *subscript {
            let axis = label as usize;
            if !inputs.iter().flatten().any(|&other| other == axis) {
                return refused(format_args!("{} of the output is in no operand", axis_name(axis)));
            }
        }
    }
    Ok(())
}

/// The dimensions under ellipses, then the labels that occur once, sorted.
fn implied_output(inputs: &[Vec<usize>], hidden: usize) -> Vec<usize> {
    let count = |axis: usize| inputs.iter().flatten().filter(|&&other| other == axis).count();
    (LABELS..LABELS + hidden).chain((0..LABELS).filter(|&axis| count(axis) == 1)).collect()
}

/// The product of two tensors of one rank, broadcast, summed over `summed`, which both have.
pub(super) fn sum_product(a: &Tensor, b: &Tensor, summed: &[usize]) -> Result<Tensor> {
    if summed.is_empty() {
        return a.mul(b);
    }
    let group = |wide_a: bool, wide_b: bool| -> Vec<usize> {
        let of_group = |&dim: &usize| {
            let sizes = (a.shape()[dim] != 1, b.shape()[dim] != 1);
            !summed.contains(&dim) && sizes == (wide_a, wide_b)
        };
        (0..a.dim()).filter(of_group).collect()
    };
    let (both, mut left) = (group(true, true), group(true, false));
    let mut right = group(false, true);
    right.extend(group(false, false));
    right.sort_unstable();
    // If all dimensions of the right operand come first, the product is computed turned around.
    let turned = left.first().zip(right.last()).is_some_and(|(left, right)| right < left);
    let (a, b) = if turned { (b, a) } else { (a, b) };
    if turned {
        std::mem::swap(&mut left, &mut right);
    }
    let count = |x: &Tensor, dims: &[usize]| dims.iter().map(|&dim| x.shape()[dim]).product::<usize>();
    let permuted = |x: &Tensor, groups: [&[usize]; 4]| {
        let dims: Vec<isize> = groups.concat().into_iter().map(|dim| dim as isize).collect();
        x.permute(&dims)
    };
    let (stack, inner) = (count(a, &both), count(a, summed));
    let rows = permuted(a, [&both, &left, summed, &right])?.reshape([stack, count(a, &left), inner])?;
    let columns = permuted(b, [&both, summed, &right, &left])?.reshape([stack, inner, count(b, &right)])?;
    let order = [&both[..], &left, summed, &right].concat();
    let size = |&dim: &usize| match (a.shape()[dim], b.shape()[dim]) {
        _ if summed.contains(&dim) => 1,
        (1, size) | (size, _) => size,
    };
    let shape: Dims = order.iter().map(size).collect();
    let mut back = vec![0isize; order.len()];
    order.iter().enumerate().for_each(|(at, &dim)| back[dim] = at as isize);
    rows.bmm(&columns)?.view(shape)?.permute(&back)
}
