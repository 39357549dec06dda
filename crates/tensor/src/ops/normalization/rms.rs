//! Normalization by the root of the mean of squares.

use super::Normalization;
use super::frame::{check_parameter, given, wide};
use super::gradient::{self, Gradients, Normalized};
use super::layer::{check_normalized, host_gradients};
use crate::autograd::{Saves, is_grad_enabled};
use crate::op::kernel_table;
use crate::ops::{check_float, sizes};
use crate::{Backward, Grads, Inputs as _, Kernel, Op, Result, Spec, Tensor, composite};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::{Dims, normalization};

/// Elements divided by the root of the mean of squares over the last dimensions, and what they were
/// multiplied by for that.
#[derive(Clone, Debug)]
pub struct FusedRmsNorm {
    /// How many dimensions a group has.
    pub dims: usize,
    /// Added to the mean.
    pub epsilon: f64,
}

impl FusedRmsNorm {
    fn size(&self, x: &Tensor) -> usize {
        x.shape()[x.dim() - self.dims..].iter().product()
    }

    fn along(&self) -> Vec<isize> {
        (1..=self.dims as isize).map(|dim| -dim).collect()
    }

    /// What elements of `x` are multiplied by, as a tensor with derivatives.
    fn scale(&self, x: &Tensor) -> Result<Tensor> {
        x.mul(x)?.mean_dims(&self.along(), true)?.add(self.epsilon)?.sqrt()?.reciprocal()
    }

    /// The output as torch makes it on the host, of other operators.
    fn composed(&self, x: &Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
        let wide = x.to_dtype(wide(x.dtype()))?;
        let last = x.dim() as isize;
        let along: Vec<isize> = (1..=self.dims as isize).map(|dim| last - dim).collect();
        let squares = wide.pow(2)?.mean_dims(&along, true)?;
        squares.add_(self.epsilon)?;
        let mut out = wide.mul(&squares.rsqrt()?)?;
        if let Some(weight) = weight {
            out = out.mul(weight)?;
        }
        out.type_as(x)
    }

    /// The gradients as tensors with derivatives.
    fn gradients(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (x, weight) = (ctx.saved(0), ctx.optional(1));
        let dtype = wide(x.dtype());
        let (grad, x) = (ctx.grad().to_dtype(dtype)?, x.to_dtype(dtype)?);
        let scale = self.scale(&x)?;
        let standard = x.mul(&scale)?;
        let mut grads = Grads::from_elem(None, 2);
        if ctx.needs(0) {
            let weighted = match weight {
                Some(weight) => grad.mul(&weight.to_dtype(dtype)?)?,
                None => grad.clone(),
            };
            let aligned = weighted.mul(&standard)?.mean_dims(&self.along(), true)?;
            grads[0] = Some(weighted.sub(&standard.mul(&aligned)?)?.mul(&scale)?);
        }
        if ctx.needs(1) {
            let rows: Vec<isize> = (0..(x.dim() - self.dims) as isize).collect();
            let products = grad.mul(&standard)?;
            grads[1] = Some(if rows.is_empty() { products } else { products.sum_dims(&rows, false)? });
        }
        Ok(grads)
    }
}

impl Op for FusedRmsNorm {
    const NAME: &'static str = "aten::_fused_rms_norm";
    const BACKWARD: &'static str = "FusedRmsNormBackward0";
    const SAVES: Saves = Saves::Both;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = [Option<&'a Tensor>; 2];
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let [x, weight, scale] = [0, 1, 3].map(|i| ctx.optional(i));
        let _span = composite("aten::_fused_rms_norm_backward", [Some(ctx.grad()), x, scale, weight], |_| {});
        let from = Normalized::new(ctx.grad(), [x, weight, None, scale]);
        let wanted = gradient::wanted(ctx);
        let both = |[to_x, to_weight, _]: Gradients| Grads::from_iter([to_x, to_weight]);
        if let Some(gradients) = self.device_gradients(from, &wanted)? {
            return Ok(both(gradients));
        }
        if is_grad_enabled() || !ctx.grad().device().is_cpu() {
            return self.gradients(ctx);
        }
        let room = gradient::room(&wanted, from.x.device())?;
        Ok(both(host_gradients(self.size(from.x), from, room)))
    }

    fn arguments(&self, [x, weight]: [Option<&Tensor>; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        let x = given(x);
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&sizes(&x.shape()[x.dim().saturating_sub(self.dims)..])));
        [weight].each(|tensor| visit(tensor.into_argument()));
        visit(Argument::Float(self.epsilon));
    }
}

impl Kernel for FusedRmsNorm {
    kernel_table!(FusedRmsNorm);

    fn infer(&self, [x, weight]: [Option<&Tensor>; 2]) -> Result<[Spec; 2]> {
        let x = given(x);
        check_float(Self::NAME, x)?;
        let (rows, normalized) = x.shape().split_at(x.dim().saturating_sub(self.dims));
        check_normalized(Self::NAME, x, normalized)?;
        check_parameter(Self::NAME, x, weight, "weight", normalized)?;
        let ones = std::iter::repeat_n(1, normalized.len());
        let scale: Dims = rows.iter().copied().chain(ones).collect();
        Ok([Spec::like(x), Spec::new(scale, wide(x.dtype()))])
    }

    fn cpu(&self, [x, weight]: [Option<&Tensor>; 2], [out, scale]: &[Tensor; 2]) -> Result<()> {
        let x = given(x);
        let (reading, weights) = (x.read(), weight.map(Tensor::read));
        normalization::rms_norm(
            x.elements(&reading),
            self.size(x),
            weight.zip(weights.as_ref()).map(|(weight, reading)| weight.elements(reading)),
            self.epsilon,
            out.elements_mut(&mut out.write()),
            scale.elements_mut(&mut scale.write()),
        );
        Ok(())
    }
}

impl Tensor {
    /// Elements divided by the root of the mean of squares over the last dimensions, which are of
    /// shape `normalized`, times a weight of that shape. `epsilon` is added to the mean; the
    /// smallest difference of the element type unless given.
    pub fn rms_norm(
        &self,
        normalized: &[usize],
        weight: Option<&Tensor>,
        epsilon: Option<f64>,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::rms_norm";
        let arguments = |visit: &mut dyn FnMut(Argument<'_>)| {
            visit(Argument::Ints(&sizes(normalized)));
            [weight].each(|tensor| visit(tensor.into_argument()));
            visit(epsilon.map_or(Argument::None, Argument::Float));
        };
        let _span = composite(NAME, [self], arguments);
        check_float(NAME, self)?;
        check_normalized(NAME, self, normalized)?;
        check_parameter(NAME, self, weight, "weight", normalized)?;
        let dtype = wide(self.dtype());
        let smallest = if dtype == crate::DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
        let op = FusedRmsNorm { dims: normalized.len(), epsilon: epsilon.unwrap_or(smallest) };
        if self.device().is_cpu() && observe::is_watched() {
            let _span = composite(FusedRmsNorm::NAME, [self], arguments);
            return op.composed(self, weight);
        }
        // Devices have single precision at most.
        let fused = || FusedRmsNorm::table().get(self.device().key).is_some() && dtype == crate::DType::F32;
        if self.device().is_cpu() || fused() {
            let [out, _] = op.call([Some(self), weight])?;
            return Ok(out);
        }
        // Other devices compose it of what they have.
        let x = self.to_dtype(dtype)?;
        let mut out = x.mul(&op.scale(&x)?)?;
        if let Some(weight) = weight {
            out = out.mul(weight)?;
        }
        out.to_dtype(self.dtype())
    }
}
