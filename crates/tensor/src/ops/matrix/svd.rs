//! Singular values and vectors.

use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::ops::check_float;
use crate::{Backward, Cause, DType, Error, Forward, Grads, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_kernels::{Dims, svd};

/// `x = u diag(s) vh` for each matrix of a stack: two sets of perpendicular vectors, and their weights in
/// falling order.
#[derive(Clone, Debug)]
pub struct Svd;

/// The singular values of each matrix of a stack, in falling order.
#[derive(Clone, Debug)]
pub struct Svdvals;

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
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = [Tensor; 3];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let outputs = [ctx.saved(0), ctx.saved(1), ctx.saved(2)];
        grads!(ctx; gradient(outputs, [ctx.grad_of(0), ctx.grad_of(1), ctx.grad_of(2)])?)
    }
}

/// What turns the vectors acts within their span by the skew parts, over the differences of squared
/// singular values, and outside of it by what is left of the gradient there.
fn gradient([u, s, vh]: [&Tensor; 3], [grad_u, grad_s, grad_vh]: [&Tensor; 3]) -> Result<Tensor> {
    let skew = |x: &Tensor| x.sub(&x.mt()?);
    // Singular values that are equal, or 0, leave vectors open; gradients that ask nothing of them get 0.
    let over = |x: &Tensor, gaps: &Tensor| x.div(gaps)?.zero_where(&x.eq(0)?);
    let (row, column) = (s.unsqueeze(-2)?, s.unsqueeze(-1)?);
    let ones = Tensor::eye(s.shape()[s.dim() - 1], s.shape()[s.dim() - 1], (s.dtype(), s.device()))?;
    let gaps = row.mul(&row)?.sub(&column.mul(&column)?)?.add(&ones)?;
    let of_u = over(&skew(&u.mt()?.matmul(grad_u)?)?, &gaps)?.mul(&row)?;
    let of_v = over(&skew(&vh.matmul(&grad_vh.mt()?)?)?, &gaps)?.mul(&column)?;
    let inside = of_u.add(&of_v)?.add(&grad_s.diag_embed(0, -2, -1)?)?;
    let (m, k, n) = (u.shape()[u.dim() - 2], u.shape()[u.dim() - 1], vh.shape()[vh.dim() - 1]);
    if m > k {
        let outside = over(grad_u, &row)?;
        let outside = outside.sub(&u.matmul(&u.mt()?.matmul(&outside)?)?)?;
        return u.matmul(&inside)?.add(&outside)?.matmul(vh);
    }
    if n > k {
        let outside = over(grad_vh, &column)?;
        let outside = outside.sub(&outside.matmul(&vh.mt()?)?.matmul(vh)?)?;
        return u.matmul(&inside.matmul(vh)?.add(&outside)?);
    }
    u.matmul(&inside)?.matmul(vh)
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

    fn cpu(&self, [x]: [&Tensor; 1], [u, s, vh]: &[Tensor; 3]) -> Result<()> {
        if x.sub(x)?.eq(0)?.all()?.item()?.as_i64() == 0 {
            return Err(Error::new(
                Cause::Argument,
                Self::NAME,
                "a matrix with infinite elements or NaN has no singular values",
            ));
        }
        let stack: usize = x.shape()[..x.dim() - 2].iter().product();
        let stacked = |x: &Tensor, last: usize| {
            let shape: Dims = [stack].iter().chain(&x.shape()[x.dim() - last..]).copied().collect();
            x.reshape(shape)
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

impl Op for Svdvals {
    const NAME: &'static str = "aten::linalg_svdvals";
    const BACKWARD: &'static str = "LinalgSvdvalsBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    /// Needs no gaps between singular values, as that of the vectors would.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let [u, _, vh] = ctx.saved(0).svd()?;
        grads!(ctx; u.mul(&ctx.grad().unsqueeze(-2)?)?.matmul(&vh)?)
    }
}

impl Forward for Svdvals {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let [_, values, _] = Svd.call([x])?;
        Ok(values)
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
        Svdvals.call([self])
    }
}
