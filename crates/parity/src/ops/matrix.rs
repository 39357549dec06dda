//! Products of matrices.

use super::Entry;
use crate::arguments::{Arguments, KEYWORD};
use cresset_tensor::{Result, Scalar, Tensor};

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
    Entry::one("addbmm", |a| added(a, "batch1", "batch2", Tensor::addbmm_scaled))
        .in_place(|x, a| change(x, a, "batch1", "batch2", Tensor::addbmm_)),
    Entry::one("addmv", |a| added(a, "mat", "vec", Tensor::addmv_scaled))
        .in_place(|x, a| change(x, a, "mat", "vec", Tensor::addmv_)),
    Entry::one("addr", |a| added(a, "vec1", "vec2", Tensor::addr_scaled))
        .in_place(|x, a| change(x, a, "vec1", "vec2", Tensor::addr_)),
    Entry::one("einsum", |a| {
        let operands: Vec<Tensor> = a.get(0, "operands")?;
        Tensor::einsum(&a.get::<String>(1, "equation")?, &operands.iter().collect::<Vec<_>>())
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
