//! Products of matrices.

use super::Entry;
use crate::arguments::{Arguments, Either, KEYWORD};
use cresset_tensor::{Cause, Error, Result, Scalar, Tensor};

type Sum = fn(&Tensor, &Tensor, &Tensor, Scalar, Scalar) -> Result<Tensor>;
type Change = fn(&Tensor, &Tensor, &Tensor, Scalar, Scalar) -> Result<()>;

fn factors(a: &Arguments<'_>) -> Result<(Scalar, Scalar)> {
    Ok((a.or(KEYWORD, "beta", Scalar::Int(1))?, a.or(KEYWORD, "alpha", Scalar::Int(1))?))
}

fn added(a: &Arguments<'_>, left: &'static str, right: &'static str, sum: Sum) -> Result<Tensor> {
    let (beta, alpha) = factors(a)?;
    sum(&a.get(0, "input")?, &a.get(1, left)?, &a.get(2, right)?, beta, alpha)
}

fn change(
    x: &Tensor,
    a: &Arguments<'_>,
    left: &'static str,
    right: &'static str,
    change: Change,
) -> Result<()> {
    let (beta, alpha) = factors(a)?;
    change(x, &a.get(1, left)?, &a.get(2, right)?, beta, alpha)
}

fn pair(dims: &[Vec<isize>]) -> Result<(&[isize], &[isize])> {
    match dims {
        [dims, other_dims] => Ok((dims, other_dims)),
        _ => Err(Error::new(Cause::Argument, "", "expects dimensions of both tensors")),
    }
}

pub(super) const OPS: &[Entry] = &[
    Entry::one("mm", |a| a.get::<Tensor>(0, "input")?.mm(&a.get(1, "mat2")?)),
    Entry::one("bmm", |a| a.get::<Tensor>(0, "input")?.bmm(&a.get(1, "mat2")?)),
    Entry::one("mv", |a| a.get::<Tensor>(0, "input")?.mv(&a.get(1, "vec")?)),
    Entry::one("dot", |a| a.get::<Tensor>(0, "input")?.dot(&a.get(1, "tensor")?)),
    Entry::one("vdot", |a| a.get::<Tensor>(0, "input")?.vdot(&a.get(1, "other")?)),
    Entry::one("outer", |a| a.get::<Tensor>(0, "input")?.outer(&a.get(1, "vec2")?)),
    Entry::one("matmul", |a| a.get::<Tensor>(0, "input")?.matmul(&a.get(1, "other")?)),
    Entry::one("addmm", |a| added(a, "mat1", "mat2", Tensor::addmm_scaled))
        .in_place(|x, a| change(x, a, "mat1", "mat2", Tensor::addmm_)),
    Entry::one("baddbmm", |a| added(a, "batch1", "batch2", Tensor::baddbmm_scaled))
        .in_place(|x, a| change(x, a, "batch1", "batch2", Tensor::baddbmm_)),
    Entry::one("addbmm", |a| added(a, "batch1", "batch2", Tensor::addbmm_scaled)).in_place(|x, a| {
        let (beta, alpha) = factors(a)?;
        x.addbmm_(&a.get(1, "batch1")?, &a.get(2, "batch2")?, beta, alpha)
    }),
    Entry::one("addmv", |a| added(a, "mat", "vec", Tensor::addmv_scaled))
        .in_place(|x, a| change(x, a, "mat", "vec", Tensor::addmv_)),
    Entry::one("addr", |a| added(a, "vec1", "vec2", Tensor::addr_scaled))
        .in_place(|x, a| change(x, a, "vec1", "vec2", Tensor::addr_)),
    Entry::one("einsum", |a| {
        let operands: Vec<Tensor> = a.get(0, "operands")?;
        Tensor::einsum(&a.get::<String>(1, "equation")?, &operands.iter().collect::<Vec<_>>())
    }),
    Entry::one("cross", |a| a.get::<Tensor>(0, "input")?.cross(&a.get(1, "other")?, a.get(2, "dim")?)),
    Entry::one("inner", |a| a.get::<Tensor>(0, "input")?.inner(&a.get(1, "other")?)),
    Entry::one("kron", |a| a.get::<Tensor>(0, "input")?.kron(&a.get(1, "other")?)),
    Entry::one("linalg.multi_dot", |a| {
        let matrices: Vec<Tensor> = a.get(0, "tensors")?;
        Tensor::multi_dot(&matrices.iter().collect::<Vec<_>>())
    }),
    Entry::one("tensordot", |a| {
        let (x, other): (Tensor, Tensor) = (a.get(0, "a")?, a.get(1, "b")?);
        match a.or(2, "dims", Either::<isize, Vec<Vec<isize>>>::One(2))? {
            Either::One(count) => {
                if !(0..=x.dim().min(other.dim()) as isize).contains(&count) {
                    let text = format_args!("there are no {count} dimensions to sum over");
                    return Err(Error::new(Cause::Argument, "", text));
                }
                let (first, last): (Vec<isize>, Vec<isize>) = ((0..count).collect(), (-count..0).collect());
                x.tensordot(&other, &last, &first)
            }
            Either::Other(dims) => {
                let (dims, other_dims) = pair(&dims)?;
                x.tensordot(&other, dims, other_dims)
            }
        }
    }),
    Entry::one("cdist", |a| {
        // How torch goes about it is its own business.
        let _: Option<String> = a.get(3, "compute_mode")?;
        a.get::<Tensor>(0, "x1")?.cdist(&a.get(1, "x2")?, a.or(2, "p", 2.0)?)
    }),
    Entry::one("dist", |a| a.get::<Tensor>(0, "input")?.dist(&a.get(1, "other")?, a.or(2, "p", 2.0)?)),
    Entry::one("nn.functional.normalize", |a| {
        let x: Tensor = a.get(0, "input")?;
        x.normalize(a.or(1, "p", 2.0)?, a.or(2, "dim", 1)?, a.or(3, "eps", 1e-12)?)
    }),
    Entry::one("nn.functional.cosine_similarity", |a| {
        let (x, other): (Tensor, Tensor) = (a.get(0, "x1")?, a.get(1, "x2")?);
        x.cosine_similarity(&other, a.or(2, "dim", 1)?, a.or(3, "eps", 1e-8)?)
    }),
    Entry::one("nn.functional.pairwise_distance", |a| {
        let (x, other): (Tensor, Tensor) = (a.get(0, "x1")?, a.get(1, "x2")?);
        x.pairwise_distance(&other, a.or(2, "p", 2.0)?, a.or(3, "eps", 1e-6)?, a.or(4, "keepdim", false)?)
    }),
    Entry::one("nn.functional.linear", |a| {
        let bias: Option<Tensor> = a.get(2, "bias")?;
        a.get::<Tensor>(0, "input")?.linear(&a.get(1, "weight")?, bias.as_ref())
    }),
    Entry::one("nn.functional.bilinear", |a| {
        let bias: Option<Tensor> = a.get(3, "bias")?;
        a.get::<Tensor>(0, "input1")?.bilinear(&a.get(1, "input2")?, &a.get(2, "weight")?, bias.as_ref())
    }),
];
