//! Products over chosen dimensions: contractions, Kronecker's and cross products, chains of matrices.

use super::super::broadcast;
use crate::autograd::Saves;
use crate::{Backward, Cause, Error, Forward, Grads, Op, Result, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// The vector at right angles to two others along a dimension of size 3.
#[derive(Clone, Debug)]
pub struct Cross {
    /// Along which dimension.
    pub dim: usize,
}

impl Op for Cross {
    const NAME: &'static str = "aten::linalg_cross";
    const BACKWARD: &'static str = "LinalgCrossBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (a, b) = (ctx.saved(0), ctx.saved(1));
        grads!(ctx; self.clone().call([b, ctx.grad()])?, self.clone().call([ctx.grad(), a])?)
    }

    fn arguments(&self, [a, b]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(a.argument()));
        visit(Argument::Tensor(b.argument()));
        visit(Argument::Int(self.dim as i64));
    }
}

impl Forward for Cross {
    fn forward(&self, [a, b]: [&Tensor; 2]) -> Result<Tensor> {
        let three = |x: &Tensor| x.shape().get(self.dim) == Some(&3);
        if a.dim() != b.dim() || !three(a) || !three(b) {
            let text = format_args!(
                "expects two tensors of one rank with size 3 in dimension {}, not shapes {:?} and {:?}",
                self.dim,
                a.shape(),
                b.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        broadcast(Self::NAME, a.shape(), b.shape())?;
        let turned = |x: &Tensor, by: isize| x.roll(&[-by], &[self.dim as isize]);
        turned(a, 1)?.mul(&turned(b, 2)?)?.sub(&turned(a, 2)?.mul(&turned(b, 1)?)?)
    }
}

fn refused<T>(op: &'static str, text: std::fmt::Arguments<'_>) -> Result<T> {
    Err(Error::new(Cause::Shape, op, text))
}

impl Tensor {
    /// The cross products with `other` along `dim`, or the first dimension of size 3 if none is named.
    pub fn cross(&self, other: &Tensor, dim: Option<isize>) -> Result<Tensor> {
        const NAME: &str = "aten::cross";
        let _span = composite(NAME, [self, other], |_| {});
        let dim = match dim {
            Some(dim) => self.dim_index(NAME, dim)?,
            None => match self.shape().iter().position(|&size| size == 3) {
                Some(dim) => dim,
                None => {
                    return refused(
                        NAME,
                        format_args!("shape {:?} has no dimension of size 3", self.shape()),
                    );
                }
            },
        };
        Cross { dim }.call([self, other])
    }

    /// The sum of products over `dims` of this tensor and `other_dims` of the other, in pairs; then come
    /// the dimensions left of this tensor, and those of the other.
    pub fn tensordot(&self, other: &Tensor, dims: &[isize], other_dims: &[isize]) -> Result<Tensor> {
        const NAME: &str = "aten::tensordot";
        let _span = composite(NAME, [self, other], |_| {});
        if dims.len() != other_dims.len() {
            return refused(NAME, format_args!("dimensions {dims:?} and {other_dims:?} do not pair"));
        }
        let (dims, other_dims) = (self.dim_indices(NAME, dims)?, other.dim_indices(NAME, other_dims)?);
        if dims.len() != other_dims.len() {
            return refused(NAME, format_args!("a tensor without dimensions has none to sum over"));
        }
        let (mut a, mut b) = (self.clone(), other.clone());
        for (&dim, &other_dim) in dims.iter().zip(&other_dims) {
            match (self.shape()[dim], other.shape()[other_dim]) {
                (one, two) if one == two => {}
                (_, 1) => a = a.sum_dims(&[dim as isize], true)?,
                (1, _) => b = b.sum_dims(&[other_dim as isize], true)?,
                (one, two) => {
                    let text = format_args!(
                        "dimension {dim} of size {one} and dimension {other_dim} of size {two} do not match, in shapes {:?} and {:?}",
                        self.shape(),
                        other.shape()
                    );
                    return refused(NAME, text);
                }
            }
        }
        let left =
            |x: &Tensor, dims: &[usize]| (0..x.dim()).filter(|dim| !dims.contains(dim)).collect::<Dims>();
        let (rows, columns) = (left(&a, &dims), left(&b, &other_dims));
        let sizes = |x: &Tensor, dims: &[usize]| dims.iter().map(|&dim| x.shape()[dim]).collect::<Dims>();
        let count = |x: &Tensor, dims: &[usize]| sizes(x, dims).iter().product::<usize>();
        let ordered = |x: &Tensor, first: &[usize], then: &[usize]| {
            let order: Vec<isize> = first.iter().chain(then).map(|&dim| dim as isize).collect();
            x.permute(&order)?.reshape([count(x, first), count(x, then)])
        };
        let product = ordered(&a, &rows, &dims)?.mm(&ordered(&b, &other_dims, &columns)?)?;
        let shape: Dims = sizes(&a, &rows).into_iter().chain(sizes(&b, &columns)).collect();
        product.reshape(shape)
    }

    /// The sum of products over the last dimension of both; the product if one is a number by itself.
    pub fn inner(&self, other: &Tensor) -> Result<Tensor> {
        const NAME: &str = "aten::inner";
        let _span = composite(NAME, [self, other], |_| {});
        if self.dim() == 0 || other.dim() == 0 {
            return self.mul(other);
        }
        if self.shape().last() != other.shape().last() {
            let text = format_args!("last dimensions differ: {:?} and {:?}", self.shape(), other.shape());
            return refused(NAME, text);
        }
        self.tensordot(other, &[-1], &[-1])
    }

    /// Kronecker's product: every element of this tensor times the whole other, side by side.
    pub fn kron(&self, other: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::kron", [self, other], |_| {});
        let rank = self.dim().max(other.dim());
        let padded = |x: &Tensor| -> Vec<usize> {
            std::iter::repeat_n(1, rank - x.dim()).chain(x.shape().iter().copied()).collect()
        };
        let (outer, inner) = (padded(self), padded(other));
        let a = self.reshape(outer.iter().flat_map(|&size| [size, 1]).collect::<Dims>())?;
        let b = other.reshape(inner.iter().flat_map(|&size| [1, size]).collect::<Dims>())?;
        a.mul(&b)?.reshape(outer.iter().zip(&inner).map(|(a, b)| a * b).collect::<Dims>())
    }

    /// The product of a chain of matrices, in the order that takes the fewest multiplications. The
    /// first may be a vector, a row, and so may the last, a column.
    pub fn multi_dot(matrices: &[&Tensor]) -> Result<Tensor> {
        const NAME: &str = "aten::linalg_multi_dot";
        let _span = composite(NAME, matrices, |_| {});
        let (Some(first), Some(last), 2..) = (matrices.first(), matrices.last(), matrices.len()) else {
            return refused(NAME, format_args!("expects at least two tensors, not {}", matrices.len()));
        };
        let mut chain: Vec<Tensor> = matrices.iter().map(|&matrix| matrix.clone()).collect();
        let end = chain.len() - 1;
        if first.dim() == 1 {
            chain[0] = first.unsqueeze(0)?;
        }
        if last.dim() == 1 {
            chain[end] = last.unsqueeze(1)?;
        }
        for (at, matrix) in chain.iter().enumerate() {
            let follows = at == 0 || chain[at - 1].shape()[1] == matrix.shape().first().copied().unwrap_or(0);
            if matrix.dim() != 2 || !follows || matrix.dtype() != first.dtype() {
                let shapes: Vec<&[usize]> = matrices.iter().map(|matrix| matrix.shape()).collect();
                return refused(NAME, format_args!("shapes {shapes:?} are no chain of matrices of one type"));
            }
        }
        let product = multiply_chain(&chain, &splits(&chain), 0, end)?;
        let rows = (first.dim() == 2).then(|| product.shape()[0]);
        let columns = (last.dim() == 2).then(|| product.shape()[1]);
        product.reshape(rows.into_iter().chain(columns).collect::<Dims>())
    }
}

/// Where each part of a chain, from one matrix to another, is best cut in two.
fn splits(chain: &[Tensor]) -> Vec<Vec<usize>> {
    let count = chain.len();
    let (mut costs, mut cuts) = (vec![vec![0.0f64; count]; count], vec![vec![0; count]; count]);
    for length in 1..count {
        for from in 0..count - length {
            let to = from + length;
            let cost = |cut: usize| {
                let sizes = [chain[from].shape()[0], chain[cut].shape()[1], chain[to].shape()[1]];
                costs[from][cut] + costs[cut + 1][to] + sizes.iter().map(|&size| size as f64).product::<f64>()
            };
            let best = (from..to).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(from);
            (costs[from][to], cuts[from][to]) = (cost(best), best);
        }
    }
    cuts
}

fn multiply_chain(chain: &[Tensor], cuts: &[Vec<usize>], from: usize, to: usize) -> Result<Tensor> {
    if from == to {
        return Ok(chain[from].clone());
    }
    let cut = cuts[from][to];
    multiply_chain(chain, cuts, from, cut)?.mm(&multiply_chain(chain, cuts, cut + 1, to)?)
}
