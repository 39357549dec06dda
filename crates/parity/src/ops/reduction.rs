//! Reductions, sorting, cumulative sums.

use super::Entry;
use crate::arguments::{Arguments, Either, KEYWORD, Term};
use cresset_tensor::ops::{Argmax, Argmin, Between, Kinds, Norm};
use cresset_tensor::{Cause, DType, Error, Op as _, Result, Scalar, Tensor};

type Dims = Vec<isize>;
type OneOrSome = Either<isize, Dims>;

/// The input, the dimensions and whether they stay.
fn over(a: &Arguments<'_>) -> Result<(Tensor, Option<Dims>, bool)> {
    Ok((a.get(0, "input")?, a.get(1, "dim")?, a.or(2, "keepdim", false)?))
}

/// As [`over`], where one dimension and a list of it are not the same.
fn question(a: &Arguments<'_>) -> Result<(Tensor, Option<OneOrSome>, bool)> {
    Ok((a.get(0, "input")?, a.get(1, "dim")?, a.or(2, "keepdim", false)?))
}

/// As [`over`], where no dimensions mean all.
fn over_all(a: &Arguments<'_>) -> Result<(Tensor, Dims, bool)> {
    let (x, dims, keep) = over(a)?;
    Ok((x, dims.unwrap_or_default(), keep))
}

/// As [`over`], for one dimension.
fn along(a: &Arguments<'_>) -> Result<(Tensor, Option<isize>, bool)> {
    Ok((a.get(0, "input")?, a.get(1, "dim")?, a.or(2, "keepdim", false)?))
}

fn dtype(a: &Arguments<'_>) -> Result<Option<DType>> {
    a.get(KEYWORD, "dtype")
}

/// Refuses another type than the tensor's own, as in-place methods here cannot even say it.
fn own_type(x: &Tensor, a: &Arguments<'_>) -> Result<()> {
    match dtype(a)? {
        Some(dtype) if dtype != x.dtype() => {
            Err(Error::new(Cause::DType, "", format_args!("{} cannot be written over {}", dtype, x.dtype())))
        }
        _ => Ok(()),
    }
}

/// The correction of a variance, which older calls say by `unbiased`.
fn spread(a: &Arguments<'_>) -> Result<(Tensor, Dims, f64, bool)> {
    if let Ok(Some(unbiased)) = a.get::<Option<bool>>(1, "unbiased") {
        let (dims, keep) = (a.or(KEYWORD, "dim", vec![])?, a.or(KEYWORD, "keepdim", false)?);
        return Ok((a.get(0, "input")?, dims, f64::from(u8::from(unbiased)), keep));
    }
    let correction = a.or(KEYWORD, "correction", Scalar::Int(1))?.as_f64();
    Ok((a.get(0, "input")?, a.or(1, "dim", vec![])?, correction, a.or(KEYWORD, "keepdim", false)?))
}

/// As [`spread`], for an estimate that is unbiased or not; nothing if a correction says which.
fn unbiased(a: &Arguments<'_>) -> Result<Option<(Tensor, Dims, bool, bool)>> {
    if a.get::<Option<Scalar>>(KEYWORD, "correction")?.is_some() {
        return Ok(None);
    }
    if !["dim", "unbiased"].iter().enumerate().any(|(i, name)| a.has(i + 1, name)) {
        return Ok(None);
    }
    let (x, keep) = (a.get(0, "input")?, a.or(3, "keepdim", false)?);
    if let Ok(Some(unbiased)) = a.get::<Option<bool>>(1, "unbiased") {
        return Ok(Some((x, a.or(KEYWORD, "dim", vec![])?, unbiased, keep)));
    }
    Ok(Some((x, a.or(1, "dim", vec![])?, a.or(2, "unbiased", true)?, keep)))
}

fn sorting(a: &Arguments<'_>) -> Result<(Tensor, isize, bool, Option<bool>)> {
    let stable = a.get(KEYWORD, "stable")?;
    Ok((a.get(0, "input")?, a.or(1, "dim", -1)?, a.or(2, "descending", false)?, stable))
}

fn norm(a: &Arguments<'_>) -> Result<Tensor> {
    let norm = match a.or(1, "p", Either::One(String::from("fro")))? {
        Either::One(name) if name == "fro" => Norm::Frobenius,
        Either::One(name) if name == "nuc" => Norm::Nuclear,
        Either::One(name) => {
            return Err(Error::new(Cause::Argument, "", format_args!("there is no norm called {name:?}")));
        }
        Either::Other(order) => Norm::Order(order),
    };
    let (x, dims): (Tensor, Dims) = (a.get(0, "input")?, a.or(2, "dim", vec![])?);
    x.norm(norm, &dims, a.or(3, "keepdim", false)?, a.get(4, "dtype")?)
}

fn between(name: &str) -> Result<Between> {
    match name {
        "linear" => Ok(Between::Linear),
        "lower" => Ok(Between::Lower),
        "higher" => Ok(Between::Higher),
        "nearest" => Ok(Between::Nearest),
        "midpoint" => Ok(Between::Midpoint),
        _ => Err(Error::new(Cause::Argument, "", format_args!("there is no interpolation {name:?}"))),
    }
}

/// What was asked for of the kinds of elements.
fn asked(kinds: Kinds, inverse: bool, counts: bool) -> Vec<Tensor> {
    let inverse = inverse.then_some(kinds.inverse);
    [kinds.values].into_iter().chain(inverse).chain(counts.then_some(kinds.counts)).collect()
}

pub(super) const OPS: &[Entry] = &[
    Entry::one("sum", |a| {
        let (x, dims, keep) = over_all(a)?;
        match dtype(a)? {
            Some(dtype) => x.sum_as(&dims, keep, dtype),
            None => x.sum_dims(&dims, keep),
        }
    }),
    Entry::one("mean", |a| {
        let (x, dims, keep) = over_all(a)?;
        match dtype(a)? {
            Some(dtype) => x.mean_as(&dims, keep, dtype),
            None => x.mean_dims(&dims, keep),
        }
    }),
    Entry::one("nansum", |a| {
        let (x, dims, keep) = over_all(a)?;
        x.nansum(&dims, keep, dtype(a)?)
    }),
    Entry::one("nanmean", |a| {
        let (x, dims, keep) = over_all(a)?;
        x.nanmean(&dims, keep, dtype(a)?)
    }),
    Entry::one("prod", |a| {
        let (x, dim, keep) = along(a)?;
        match dim {
            Some(dim) => x.prod_dim(dim, keep, dtype(a)?),
            None => x.prod(dtype(a)?),
        }
    }),
    Entry::one("cumsum", |a| a.get::<Tensor>(0, "input")?.cumsum(a.get(1, "dim")?, dtype(a)?))
        .in_place(|x, a| own_type(x, a).and_then(|()| x.cumsum_(a.get(1, "dim")?))),
    Entry::one("cumprod", |a| a.get::<Tensor>(0, "input")?.cumprod(a.get(1, "dim")?, dtype(a)?))
        .in_place(|x, a| own_type(x, a).and_then(|()| x.cumprod_(a.get(1, "dim")?))),
    Entry::one("norm", norm),
    Entry::one("norm.fro", norm),
    Entry::one("norm.inf", norm),
    Entry::one("norm.nuc", norm),
    Entry::one("linalg.vector_norm", |a| {
        let (x, dims): (Tensor, Dims) = (a.get(0, "input")?, a.or(2, "dim", vec![])?);
        x.vector_norm(a.or(1, "ord", 2.0)?, &dims, a.or(3, "keepdim", false)?, dtype(a)?)
    }),
    Entry::one("all", |a| match question(a)? {
        (x, Some(Either::One(dim)), keep) => x.all_dim(dim, keep),
        (x, Some(Either::Other(dims)), keep) => x.all_dims(&dims, keep),
        (x, None, _) => x.all(),
    }),
    Entry::one("any", |a| match question(a)? {
        (x, Some(Either::One(dim)), keep) => x.any_dim(dim, keep),
        (x, Some(Either::Other(dims)), keep) => x.any_dims(&dims, keep),
        (x, None, _) => x.any(),
    }),
    Entry::one("count_nonzero", |a| {
        a.get::<Tensor>(0, "input")?.count_nonzero(&a.or::<Dims>(1, "dim", vec![])?)
    }),
    Entry::one("amax", |a| {
        let (x, dims, keep) = over_all(a)?;
        x.amax(&dims, keep)
    }),
    Entry::one("amin", |a| {
        let (x, dims, keep) = over_all(a)?;
        x.amin(&dims, keep)
    }),
    Entry::one("argmax", |a| {
        let (x, dim, keep) = along(a)?;
        match dim {
            Some(dim) => x.argmax(dim, keep),
            None => Argmax { dim: None, keep }.call([&x]),
        }
    }),
    Entry::one("argmin", |a| {
        let (x, dim, keep) = along(a)?;
        match dim {
            Some(dim) => x.argmin(dim, keep),
            None => Argmin { dim: None, keep }.call([&x]),
        }
    }),
    Entry::one("max.reduction_no_dim", |a| a.get::<Tensor>(0, "input")?.max()),
    Entry::one("min.reduction_no_dim", |a| a.get::<Tensor>(0, "input")?.min()),
    Entry::many("max.reduction_with_dim", |a| {
        Ok(a.get::<Tensor>(0, "input")?.max_dim(a.get(1, "dim")?, a.or(2, "keepdim", false)?)?.into())
    }),
    Entry::many("min.reduction_with_dim", |a| {
        Ok(a.get::<Tensor>(0, "input")?.min_dim(a.get(1, "dim")?, a.or(2, "keepdim", false)?)?.into())
    }),
    Entry::one("logsumexp", |a| {
        let (x, dims, keep) = over_all(a)?;
        x.logsumexp(&dims, keep)
    }),
    Entry::one("var", |a| {
        if let Some((x, dims, unbiased, keep)) = unbiased(a)? {
            return x.var_unbiased(&dims, unbiased, keep);
        }
        if !a.has(KEYWORD, "correction") {
            return a.get::<Tensor>(0, "input")?.var();
        }
        let (x, dims, correction, keep) = spread(a)?;
        x.var_dims(&dims, correction, keep)
    }),
    Entry::one("std", |a| {
        if let Some((x, dims, unbiased, keep)) = unbiased(a)? {
            return x.std_unbiased(&dims, unbiased, keep);
        }
        if !a.has(KEYWORD, "correction") {
            return a.get::<Tensor>(0, "input")?.std();
        }
        let (x, dims, correction, keep) = spread(a)?;
        x.std_dims(&dims, correction, keep)
    }),
    Entry::many("var_mean", |a| {
        let (x, dims, correction, keep) = spread(a)?;
        Ok(x.var_mean(&dims, correction, keep)?.into())
    }),
    Entry::many("std_mean", |a| {
        let (x, dims, correction, keep) = spread(a)?;
        Ok(x.std_mean(&dims, correction, keep)?.into())
    }),
    Entry::many("sort", |a| {
        let (x, dim, descending, stable) = sorting(a)?;
        Ok(x.sort(dim, descending, stable)?.into())
    }),
    Entry::one("argsort", |a| {
        let (x, dim, descending, stable) = sorting(a)?;
        x.argsort(dim, descending, stable)
    }),
    Entry::one("msort", |a| a.get::<Tensor>(0, "input")?.msort()),
    Entry::many("aminmax", |a| {
        let (x, dim, keep): (Tensor, _, _) =
            (a.get(0, "input")?, a.get(KEYWORD, "dim")?, a.get(KEYWORD, "keepdim")?);
        Ok(x.aminmax(dim, Option::unwrap_or(keep, false))?.into())
    }),
    Entry::one("bincount", |a| {
        let weights: Option<Tensor> = a.get(1, "weights")?;
        let least = if a.has(2, "minlength") { a.size(2, "minlength")? } else { 0 };
        a.get::<Tensor>(0, "input")?.bincount(weights.as_ref(), least)
    }),
    Entry::one("histc", |a| {
        let bins = if a.has(1, "bins") { a.size(1, "bins")? } else { 100 };
        a.get::<Tensor>(0, "input")?.histc(bins, a.or(2, "min", 0.0)?, a.or(3, "max", 0.0)?)
    }),
    Entry::many("cummax", |a| Ok(a.get::<Tensor>(0, "input")?.cummax(a.get(1, "dim")?)?.into())),
    Entry::many("cummin", |a| Ok(a.get::<Tensor>(0, "input")?.cummin(a.get(1, "dim")?)?.into())),
    Entry::one("logcumsumexp", |a| a.get::<Tensor>(0, "input")?.logcumsumexp(a.get(1, "dim")?)),
    Entry::one("diff", |a| {
        let times = if a.has(1, "n") { a.size(1, "n")? } else { 1 };
        let (before, after): (Option<Tensor>, Option<Tensor>) = (a.get(3, "prepend")?, a.get(4, "append")?);
        a.get::<Tensor>(0, "input")?.diff(times, a.or(2, "dim", -1)?, before.as_ref(), after.as_ref())
    }),
    Entry::many("kthvalue", |a| {
        let x: Tensor = a.get(0, "input")?;
        Ok(x.kthvalue(a.size(1, "k")?, a.or(2, "dim", -1)?, a.or(3, "keepdim", false)?)?.into())
    }),
    Entry::many("median", |a| match along(a)? {
        (x, Some(dim), keep) => Ok(x.median_dim(dim, keep)?.into()),
        (x, None, _) => Ok(vec![x.median()?]),
    }),
    Entry::many("nanmedian", |a| match along(a)? {
        (x, Some(dim), keep) => Ok(x.nanmedian_dim(dim, keep)?.into()),
        (x, None, _) => Ok(vec![x.nanmedian()?]),
    }),
    Entry::many("mode", |a| {
        let (x, dim, keep) = along(a)?;
        Ok(x.mode(dim.unwrap_or(-1), keep)?.into())
    })
    .one_of_equals(|a, outputs| {
        let (x, dim, keep) = along(a)?;
        let dim = dim.unwrap_or(-1);
        if x.dim() == 0 {
            return Ok(x);
        }
        let index = if keep { outputs[1].clone() } else { outputs[1].unsqueeze(dim)? };
        let there = x.detach()?.gather(dim, &index)?;
        if keep { Ok(there) } else { there.squeeze_dim(dim) }
    }),
    Entry::one("quantile", |a| {
        let (x, q): (Tensor, Term) = (a.get(0, "input")?, a.get(1, "q")?);
        let between = between(&a.or(KEYWORD, "interpolation", String::from("linear"))?)?;
        x.quantile(&q, a.get(2, "dim")?, a.or(3, "keepdim", false)?, between)
    }),
    Entry::one("trace", |a| a.get::<Tensor>(0, "input")?.trace()),
    Entry::many("unique", |a| {
        // Sorted or not, torch's host gives them in order.
        let _: Option<bool> = a.get(1, "sorted")?;
        let (inverse, counts) = (a.or(2, "return_inverse", false)?, a.or(3, "return_counts", false)?);
        Ok(asked(a.get::<Tensor>(0, "input")?.unique(a.get(4, "dim")?)?, inverse, counts))
    }),
    Entry::many("unique_consecutive", |a| {
        let (inverse, counts) = (a.or(1, "return_inverse", false)?, a.or(2, "return_counts", false)?);
        Ok(asked(a.get::<Tensor>(0, "input")?.unique_consecutive(a.get(3, "dim")?)?, inverse, counts))
    }),
    Entry::many("topk", |a| {
        let x: Tensor = a.get(0, "input")?;
        let (largest, sorted) = (a.or(3, "largest", true)?, a.or(4, "sorted", true)?);
        Ok(x.topk(a.get(1, "k")?, a.or(2, "dim", -1)?, largest, sorted)?.into())
    }),
];
