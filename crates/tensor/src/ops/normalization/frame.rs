//! What a group is, and normalization by groups with its derivative.

use super::gradient::{Gradients, Normalized, Wanted};
use crate::ops::check_float;
use crate::{Cause, DType, Element as _, Error, Result, Spec, Tensor};
use cresset_kernels::{Dims, View, elementwise, normalization, with_dtype};

/// A tensor, a weight and a bias.
pub(super) type Affine<'a> = [Option<&'a Tensor>; 3];

/// How a tensor is seen while it is normalized.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// The tensor's shape, with dimensions merged or split.
    pub(super) shape: Dims,
    /// Along which of them a group extends.
    pub(super) along: &'static [usize],
    /// Along which of them weight and bias are repeated.
    pub(super) repeated: &'static [usize],
}

impl Frame {
    /// The shape with `dims` of size 1.
    fn without(&self, dims: &[usize]) -> Dims {
        self.shape.iter().enumerate().map(|(dim, &size)| if dims.contains(&dim) { 1 } else { size }).collect()
    }

    /// The sizes before, of, and after the dimensions that are not among `dims`.
    fn split(&self, dims: &[usize]) -> [usize; 3] {
        let others = || (0..self.shape.len()).filter(|dim| !dims.contains(dim));
        let (first, end) = (others().next().unwrap_or(0), others().next_back().map_or(0, |last| last + 1));
        [&self.shape[..first], &self.shape[first..end], &self.shape[end..]]
            .map(|sizes| sizes.iter().product())
    }

    /// The number of groups.
    fn groups(&self) -> usize {
        self.split(self.along)[1]
    }

    /// Elements in a group.
    pub(super) fn count(&self) -> usize {
        let [outer, _, inner] = self.split(self.along);
        outer * inner
    }
}

/// The output, and the mean and scale of each group.
pub(super) fn infer(
    op: &'static str,
    frame: &Frame,
    [x, weight, bias]: Affine<'_>,
    expected: &[usize],
) -> Result<[Spec; 3]> {
    let x = given(x);
    check_float(op, x)?;
    for (tensor, name) in [weight, bias].into_iter().zip(["weight", "bias"]) {
        check_parameter(op, x, tensor, name, expected)?;
    }
    let statistics = Spec::new([frame.groups()], wide(x.dtype()));
    Ok([Spec::like(x), statistics.clone(), statistics])
}

/// The first input.
pub(super) fn given(x: Option<&Tensor>) -> &Tensor {
    x.expect("the first input is always given")
}

/// Refuses another shape than expected, and other types than the input's, or single precision
/// beside half precision.
pub(super) fn check_parameter(
    op: &'static str,
    x: &Tensor,
    parameter: Option<&Tensor>,
    name: &str,
    expected: &[usize],
) -> Result<()> {
    let Some(parameter) = parameter else { return Ok(()) };
    let (shape, dtype) = (parameter.shape(), parameter.dtype());
    if shape != expected {
        let text = format_args!(
            "expects a {name} of shape {expected:?} for an input of shape {:?}, not {shape:?}",
            x.shape()
        );
        return Err(Error::new(Cause::Shape, op, text));
    }
    if dtype != x.dtype() && dtype != wide(x.dtype()) {
        let text = format_args!("expects a {name} of {} like the input, not {dtype}", x.dtype());
        return Err(Error::new(Cause::DType, op, text));
    }
    Ok(())
}

/// The type that half precision is computed in; others are computed in their own.
pub(super) fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Mean and variance of each group.
pub(super) fn moments(frame: &Frame, x: &Tensor) -> Vec<(f64, f64)> {
    normalization::moments(x.elements(&x.read()), frame.split(frame.along))
}

/// Fills the output from `(mean, variance)` of each group, and keeps mean and scale.
pub(super) fn fill(
    frame: &Frame,
    [x, weight, bias]: Affine<'_>,
    moments: Vec<(f64, f64)>,
    epsilon: f64,
    [out, means, scales]: &[Tensor; 3],
) -> Result<()> {
    let shifts: Vec<_> =
        moments.into_iter().map(|(mean, variance)| (mean, 1.0 / (variance + epsilon).sqrt())).collect();
    keep(shifts.iter().map(|shift| shift.0), means);
    keep(shifts.iter().map(|shift| shift.1), scales);
    let x = given(x);
    let (reading, weights, biases) = (x.read(), weight.map(Tensor::read), bias.map(Tensor::read));
    let affine = [weight.zip(weights.as_ref()), bias.zip(biases.as_ref())];
    normalization::normalize(
        x.elements(&reading),
        frame.split(frame.along),
        &shifts,
        frame.split(frame.repeated),
        affine.map(|given| given.map(|(tensor, reading)| tensor.elements(reading))),
        out.elements_mut(&mut out.write()),
    );
    Ok(())
}

/// Writes numbers into a tensor of one dimension.
pub(super) fn keep(numbers: impl Iterator<Item = f64>, out: &Tensor) {
    let numbers: Vec<f64> = numbers.collect();
    let layout = cresset_kernels::Layout::contiguous(out.shape()).expect("the tensor exists");
    elementwise::copy(View::of(&numbers, &layout), out.elements_mut(&mut out.write()));
}

/// The gradients of input, weight and bias on the host, into `room`. With `own`, mean and scale are those of the
/// elements themselves, which get a gradient through them.
pub(super) fn host_gradients(
    frame: &Frame,
    own: bool,
    from: Normalized<'_>,
    shifts: &[(f64, f64)],
    room: Gradients,
) -> Gradients {
    let Normalized { grad, x, weight, .. } = from;
    let (reading, x_reading, weights) = (grad.read(), x.read(), weight.map(Tensor::read));
    let of = normalization::Grouped {
        x: x.elements(&x_reading),
        groups: frame.split(frame.along),
        shifts,
        own,
        channels: frame.split(frame.repeated),
        weight: weight.zip(weights.as_ref()).map(|(weight, reading)| weight.elements(reading)),
    };
    let mut writings = room.each_ref().map(|room| room.as_ref().map(Tensor::write));
    let mut outputs = room.iter().zip(&mut writings).map(|(room, writing)| {
        room.as_ref().zip(writing.as_mut()).map(|(room, writing)| room.elements_mut(writing))
    });
    let outputs = std::array::from_fn(|_| outputs.next().flatten());
    normalization::grouped_backward(grad.elements(&reading), &of, outputs);
    drop(writings);
    room
}

/// Numbers in double precision.
pub(super) fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    let reading = x.read();
    Ok(with_dtype!(x.dtype(), T => {
        let elements = x.elements(&reading).array::<T>();
        elements.iter().map(|number| number.scalar().as_f64()).collect()
    }))
}

/// The gradients of input, weight and bias on a device that has no kernel for them, of other operators; `own` as
/// in [`host_gradients`].
pub(super) fn gradients(
    frame: &Frame,
    own: bool,
    from: Normalized<'_>,
    wanted: &Wanted,
) -> Result<Gradients> {
    let seen = |x: &Tensor| x.to_dtype(wide(x.dtype()))?.reshape(&frame.shape);
    let (grad, x) = (seen(from.grad)?, seen(from.x)?);
    let along: Vec<isize> = frame.along.iter().map(|&dim| dim as isize).collect();
    let repeated: Vec<isize> = frame.repeated.iter().map(|&dim| dim as isize).collect();
    let shape = frame.without(frame.along);
    let (centred, scale) = (x.sub(&given(from.mean).reshape(&shape)?)?, given(from.scale).reshape(&shape)?);
    let standard = centred.mul(&scale)?;
    let to_x = |spec: &Spec| {
        let weighted = match from.weight {
            Some(weight) => {
                grad.mul(&weight.to_dtype(grad.dtype())?.reshape(frame.without(frame.repeated))?)?
            }
            None => grad.clone(),
        };
        let inner = if own {
            let aligned = weighted.mul(&standard)?.mean_dims(&along, true)?;
            weighted.sub(&weighted.mean_dims(&along, true)?)?.sub(&standard.mul(&aligned)?)?
        } else {
            weighted
        };
        inner.mul(&scale)?.reshape(&spec.shape)
    };
    let summed = |x: &Tensor, spec: &Spec| x.sum_dims(&repeated, false)?.reshape(&spec.shape);
    let [of_x, of_weight, of_bias] = wanted.each_ref().map(Option::as_ref);
    let found = [
        of_x.map(to_x).transpose()?,
        of_weight.map(|spec| summed(&grad.mul(&standard)?, spec)).transpose()?,
        of_bias.map(|spec| summed(&grad, spec)).transpose()?,
    ];
    let mut typed = [None, None, None];
    for ((typed, found), spec) in typed.iter_mut().zip(found).zip(wanted) {
        *typed = found.zip(spec.as_ref()).map(|(found, spec)| found.to_dtype(spec.dtype)).transpose()?;
    }
    Ok(typed)
}
