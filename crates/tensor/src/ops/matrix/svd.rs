//! Singular values and vectors.

use crate::autocast;
use crate::autograd::Saves;
use crate::composite::composite;
use crate::op::kernel_table;
use crate::ops::check_float;
use crate::{
    Backward, Cause, DType, Error, Grads, Kernel, Layout, MemoryFormat, Op, Result, Spec, Tensor, grads,
    shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, Float, svd, with_dtype};

/// `x = u diag(s) vh` for each matrix of a stack: two sets of perpendicular vectors, and their weights in
/// falling order.
#[derive(Clone, Debug)]
pub struct Svd;

fn check(op: &'static str, x: &Tensor) -> Result<()> {
    check_float(op, x)?;
    if matches!(x.dtype(), DType::F16 | DType::BF16) {
        return Err(Error::new(Cause::DType, op, format_args!("expects f32 or f64, not {}", x.dtype())));
    }
    if x.dim() < 2 {
        let text = format_args!("expects matrices, not shape {:?}", x.shape());
        return Err(Error::new(Cause::Shape, op, text));
    }
    Ok(())
}

impl Op for Svd {
    const NAME: &'static str = "aten::_linalg_svd";
    const BACKWARD: &'static str = "LinalgSvdBackward0";
    const SAVES: Saves = Saves::Outputs;
    const TAKES_MISSING: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let outputs = [ctx.saved(0), ctx.saved(1), ctx.saved(2)];
        grads!(ctx; gradient(outputs, [0, 1, 2].map(|i| ctx.grad_if_any(i)))?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Bool(false));
        visit(Argument::Bool(x.requires_grad()));
        visit(Argument::None);
    }
}

/// That of singular values alone needs no gaps between them. What turns the vectors acts within their span by the
/// skew parts, over the differences of squared singular values, and outside of it by what is left of the gradient
/// there.
fn gradient([u, s, vh]: [&Tensor; 3], [grad_u, grad_s, grad_vh]: [Option<&Tensor>; 3]) -> Result<Tensor> {
    let (m, k, n) = (u.shape()[u.dim() - 2], u.shape()[u.dim() - 1], vh.shape()[vh.dim() - 1]);
    let mut inside = match (grad_u, grad_s, grad_vh) {
        (None, Some(grad_s), None) if m >= n => {
            return u.matmul(&grad_s.unsqueeze(-1)?.mul(vh)?);
        }
        (None, Some(grad_s), None) => return u.mul(&grad_s.unsqueeze(-2)?)?.matmul(vh),
        _ => turning(u, s, vh, grad_u, grad_vh)?,
    };
    if let Some(grad_s) = grad_s {
        inside = inside.add(&grad_s.diag_embed(0, -2, -1)?)?;
    }
    if m > k
        && let Some(grad_u) = grad_u
    {
        let within = u.matmul(&inside)?;
        let scaled = grad_u.div(&s.unsqueeze(-2)?)?;
        let shared = u.matmul(&adjoint(u)?.matmul(&scaled)?)?;
        return within.add(&scaled)?.sub(&shared)?.matmul(vh);
    }
    if n > k
        && let Some(grad_vh) = grad_vh
    {
        let within = inside.matmul(vh)?;
        let scaled = grad_vh.div(&s.unsqueeze(-1)?)?;
        let shared = scaled.matmul(&adjoint(vh)?)?.matmul(vh)?;
        return u.matmul(&within.add(&scaled)?.sub(&shared)?);
    }
    if m >= n { u.matmul(&inside.matmul(vh)?) } else { u.matmul(&inside)?.matmul(vh) }
}

/// What the gradients of the vectors ask for within their span.
fn turning(
    u: &Tensor,
    s: &Tensor,
    vh: &Tensor,
    grad_u: Option<&Tensor>,
    grad_vh: Option<&Tensor>,
) -> Result<Tensor> {
    let skew = |x: Tensor| x.sub(&adjoint(&x)?);
    let of_u = grad_u.map(|grad_u| skew(adjoint(u)?.matmul(grad_u)?)).transpose()?;
    let of_v = grad_vh.map(|grad_vh| skew(vh.matmul(&adjoint(grad_vh)?)?)).transpose()?;
    let squares = s.mul(s)?;
    let column = squares.unsqueeze(-1)?;
    let gaps = squares.unsqueeze(-2)?.sub(&column)?;
    gaps.diagonal(0, -2, -1)?.fill_(1)?;
    let right = of_v.map(|of_v| s.unsqueeze(-1)?.mul(&of_v)).transpose()?;
    let left = of_u.map(|of_u| of_u.mul(&s.unsqueeze(-2)?)).transpose()?;
    match (left, right) {
        (Some(left), Some(right)) => left.add(&right)?.div(&gaps),
        (Some(one), None) | (None, Some(one)) => one.div(&gaps),
        (None, None) => gaps.zeros_like(),
    }
}

/// The transpose, by the name that complex matrices give it.
fn adjoint(x: &Tensor) -> Result<Tensor> {
    let _span = composite("aten::mH", [x], |_| {});
    x.transpose(-2, -1)
}

impl Kernel for Svd {
    kernel_table!(Svd);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 3]> {
        check(Self::NAME, x)?;
        let (stack, matrix) = x.shape().split_at(x.dim() - 2);
        let (m, n) = (matrix[0], matrix[1]);
        let spec = |last: &[usize]| Spec::new([stack, last].concat(), x.dtype());
        Ok([spec(&[m, m.min(n)]), spec(&[m.min(n)]), spec(&[m.min(n), n])])
    }

    /// Torch's library writes vectors column by column, over a copy of the matrices, and says whether it failed.
    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<[Tensor; 3]>> {
        let specs = self.infer([x])?;
        let stack = &x.shape()[..x.dim() - 2];
        let by_column = |spec: &Spec| {
            let last = spec.shape.len();
            let order: Dims = (0..last - 2).chain([last - 1, last - 2]).collect();
            let layout =
                Layout::ordered(&spec.shape, &order).expect("as many elements as there is memory for");
            Tensor::uninit_as(layout, spec.dtype, x.device())
        };
        let values = Tensor::uninit(&specs[1].shape, x.dtype(), x.device())?;
        let outputs = [by_column(&specs[0])?, values, by_column(&specs[2])?];
        let failures = Tensor::zeros(stack, DType::I32)?;
        let mut copy = x.mt()?.copy_in(MemoryFormat::Contiguous)?;
        copy.transpose_(-2, -1)?;
        self.fill([x], &outputs, x.device())?;
        let more = [Argument::None, Argument::Bool(stack.is_empty())];
        let _span = shown::call("aten::_linalg_check_errors", [&failures], &more);
        failures.any()?.item()?;
        Ok(Some(outputs))
    }

    fn cpu(&self, [x]: [&Tensor; 1], [u, s, vh]: &[Tensor; 3]) -> Result<()> {
        if x.numel() == 0 {
            return Ok(());
        }
        let reading = x.read();
        let finite = with_dtype!(x.dtype(), [floats] T => {
            let elements = x.elements(&reading).array::<T>();
            elements.iter().all(|element| Float::wide(*element).is_finite())
        }, else true);
        drop(reading);
        if !finite {
            return Err(Error::new(
                Cause::Argument,
                Self::NAME,
                "a matrix with infinite elements or NaN has no singular values",
            ));
        }
        let stack: usize = x.shape()[..x.dim() - 2].iter().product();
        let stacked = |x: &Tensor, last: usize| {
            let shape: Dims = [stack].iter().chain(&x.shape()[x.dim() - last..]).copied().collect();
            x.layout().view(&shape).map_or_else(|| x.reshape(&shape), |layout| Ok(x.with_layout(layout)))
        };
        let (x, u, s, vh) = (stacked(x, 2)?, stacked(u, 2)?, stacked(s, 1)?, stacked(vh, 2)?);
        let (reading, mut writing_u, mut writing_s, mut writing_vh) =
            (x.read(), u.write(), s.write(), vh.write());
        svd::svd(
            x.elements(&reading),
            u.elements_mut(&mut writing_u),
            s.elements_mut(&mut writing_s),
            vh.elements_mut(&mut writing_vh),
        );
        Ok(())
    }
}

impl Tensor {
    /// `[u, s, vh]` such that `self = u diag(s) vh`: two sets of perpendicular vectors, and their weights,
    /// the singular values, in falling order.
    pub fn svd(&self) -> Result<[Tensor; 3]> {
        Svd.call([self])
    }

    /// The singular values, in falling order.
    pub fn svdvals(&self) -> Result<Tensor> {
        const NAME: &str = "aten::linalg_svdvals";
        let _span = composite(NAME, [self], |visit| visit(Argument::None));
        if let Some(cast) = autocast::casting(NAME, [self], |[x]| x.svdvals()) {
            return cast;
        }
        let [_, values, _] = Svd.call([self])?;
        Ok(values)
    }
}
