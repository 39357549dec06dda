//! Indexing.

use super::Entry;
use crate::arguments::{Arguments, KEYWORD, Term};
use crate::subscript::Subscript;
use cresset_tensor::ops::{Combine, IsIn, SearchSorted};
use cresset_tensor::{Cause, DType, Device, Error, Op, Result, Tensor};

pub(super) const OPS: &[Entry] = &[
    Entry::one("__getitem__", |a| {
        let Subscript(index) = a.get(1, "index")?;
        input(a)?.get(&index[..])
    }),
    Entry::one("argwhere", |a| input(a)?.argwhere()),
    Entry::one("bucketize", |a| {
        let boundaries: Tensor = a.get(1, "boundaries")?;
        let (right, int32) = (a.or(KEYWORD, "right", false)?, a.or(KEYWORD, "out_int32", false)?);
        tensor(&a.get(0, "input")?, (boundaries.dtype(), boundaries.device()))?.bucketize_as(
            &boundaries,
            right,
            int32,
        )
    }),
    Entry::one("gather", |a| {
        let _: bool = a.or(KEYWORD, "sparse_grad", false)?;
        input(a)?.gather(dim(a)?, &index(a)?)
    }),
    Entry::one("index_add", |a| {
        input(a)?.index_add_scaled(dim(a)?, &index(a)?, &source(a, "source")?, alpha(a)?)
    })
    .in_place(|x, a| x.index_add_scaled_(dim(a)?, &index(a)?, &source(a, "source")?, alpha(a)?)),
    Entry::one("index_copy", |a| input(a)?.index_copy(dim(a)?, &index(a)?, &source(a, "source")?))
        .in_place(|x, a| x.index_copy_(dim(a)?, &index(a)?, &source(a, "source")?)),
    Entry::one("index_fill", |a| {
        let value: Term = a.get(3, "value")?;
        input(a)?.index_fill(dim(a)?, &index(a)?, &value)
    })
    .in_place(|x, a| {
        let value: Term = a.get(3, "value")?;
        x.index_fill_(dim(a)?, &index(a)?, &value)
    }),
    Entry::one("index_put", |a| {
        let (indices, values): (Vec<Option<Tensor>>, Tensor) = (a.get(1, "indices")?, a.get(2, "values")?);
        let accumulate = a.or(3, "accumulate", false)?;
        input(a)?.index_put(&references(&indices), &values, accumulate)
    })
    .in_place(|x, a| {
        let (indices, values): (Vec<Option<Tensor>>, Tensor) = (a.get(1, "indices")?, a.get(2, "values")?);
        x.index_put_(&references(&indices), &values, a.or(3, "accumulate", false)?)
    }),
    Entry::one("index_reduce", |a| {
        let (how, include) = reduction(a)?;
        input(a)?.index_reduce(dim(a)?, &index(a)?, &source(a, "source")?, how, include)
    })
    .in_place(|x, a| {
        let (how, include) = reduction(a)?;
        x.index_reduce_(dim(a)?, &index(a)?, &source(a, "source")?, how, include)
    }),
    Entry::one("index_select", |a| input(a)?.index_select(dim(a)?, &index(a)?)),
    Entry::one("isin", |a| {
        let _: bool = a.or(KEYWORD, "assume_unique", false)?;
        let (x, known): (Term, Term) = (a.get(0, "elements")?, a.get(1, "test_elements")?);
        let (x, known) = (tensor(&x, kind(&known))?, tensor(&known, kind(&x))?);
        IsIn { invert: a.or(KEYWORD, "invert", false)? }.call([&x, &known])
    }),
    Entry::one("masked_fill", |a| {
        let value: Term = a.get(2, "value")?;
        input(a)?.masked_fill(&mask(a)?, &value)
    })
    .in_place(|x, a| {
        let value: Term = a.get(2, "value")?;
        x.masked_fill_(&mask(a)?, &value)
    }),
    Entry::one("masked_scatter", |a| input(a)?.masked_scatter(&mask(a)?, &a.get(2, "source")?))
        .in_place(|x, a| x.masked_scatter_(&mask(a)?, &a.get(2, "source")?)),
    Entry::one("masked_select", |a| input(a)?.masked_select(&mask(a)?)),
    Entry::one("nn.functional.embedding", |a| {
        // Recorded with the table first, as the method here has it.
        let (weight, indices): (Tensor, Tensor) = (a.get(0, "weight")?, a.get(1, "input")?);
        let padding: Option<isize> = a.get(2, "padding_idx")?;
        if let Some(norm) = a.get::<Option<f64>>(3, "max_norm")? {
            weight.embedding_renorm_(&indices, norm, a.or(4, "norm_type", 2.0)?)?;
        }
        let scale = a.or(5, "scale_grad_by_freq", false)?;
        if a.or(6, "sparse", false)? {
            return Err(Error::new(
                Cause::Argument,
                "aten::embedding",
                "gradients are dense; leave sparse out",
            ));
        }
        weight.embedding_scaled(&indices, padding, scale)
    }),
    Entry::one("nn.functional.one_hot", |a| {
        let classes: i64 = a.or(1, "num_classes", -1)?;
        input(a)?.one_hot(usize::try_from(classes).ok())
    }),
    Entry::many("nonzero", |a| {
        if a.or(KEYWORD, "as_tuple", false)? {
            input(a)?.nonzero_tuple()
        } else {
            Ok(vec![input(a)?.nonzero()?])
        }
    }),
    Entry::one("put", |a| {
        input(a)?.put(&a.get(1, "index")?, &a.get(2, "source")?, a.or(3, "accumulate", false)?)
    })
    .in_place(|x, a| x.put_(&a.get(1, "index")?, &a.get(2, "source")?, a.or(3, "accumulate", false)?)),
    Entry::one("scatter", |a| {
        input(a)?.scatter_combined(dim(a)?, &index(a)?, &a.get::<Term>(3, "src")?, combination(a)?)
    })
    .in_place(|x, a| x.scatter_combined_(dim(a)?, &index(a)?, &a.get::<Term>(3, "src")?, combination(a)?)),
    Entry::one("scatter_add", |a| input(a)?.scatter_add(dim(a)?, &index(a)?, &source(a, "src")?))
        .in_place(|x, a| x.scatter_add_(dim(a)?, &index(a)?, &source(a, "src")?)),
    Entry::one("scatter_reduce", |a| {
        let (how, include) = reduction(a)?;
        input(a)?.scatter_reduce(dim(a)?, &index(a)?, &source(a, "src")?, how, include)
    })
    .in_place(|x, a| {
        let (how, include) = reduction(a)?;
        x.scatter_reduce_(dim(a)?, &index(a)?, &source(a, "src")?, how, include)
    }),
    Entry::one("searchsorted", |a| {
        let sorted: Tensor = a.get(0, "sorted_sequence")?;
        let values = tensor(&a.get(1, "input")?, (sorted.dtype(), sorted.device()))?;
        let (int32, sorter): (bool, Option<Tensor>) =
            (a.or(KEYWORD, "out_int32", false)?, a.get(KEYWORD, "sorter")?);
        let op = SearchSorted { right: right(a)?, int32 };
        op.call(([&sorted, &values], sorter.as_ref()))
    }),
    Entry::one("take", |a| input(a)?.take(&a.get(1, "index")?)),
    Entry::one("take_along_dim", |a| {
        let index: Tensor = a.get(1, "indices")?;
        match a.get(2, "dim")? {
            Some(dim) => input(a)?.take_along_dim(&index, dim),
            None => input(a)?.take_along(&index),
        }
    }),
];

fn input(a: &Arguments<'_>) -> Result<Tensor> {
    a.get(0, "input")
}

fn dim(a: &Arguments<'_>) -> Result<isize> {
    a.get(1, "dim")
}

fn index(a: &Arguments<'_>) -> Result<Tensor> {
    a.get(2, "index")
}

fn source(a: &Arguments<'_>, name: &'static str) -> Result<Tensor> {
    a.get(3, name)
}

fn mask(a: &Arguments<'_>) -> Result<Tensor> {
    a.get(1, "mask")
}

fn alpha(a: &Arguments<'_>) -> Result<cresset_tensor::Scalar> {
    a.or(KEYWORD, "alpha", 1.into())
}

fn references(indices: &[Option<Tensor>]) -> Vec<Option<&Tensor>> {
    indices.iter().map(Option::as_ref).collect()
}

/// A tensor, or the number that stands in its place as one of such elements, and there.
fn tensor(term: &Term, kind: (DType, Device)) -> Result<Tensor> {
    match term {
        Term::Tensor(tensor) => Ok(tensor.clone()),
        Term::Scalar(scalar) => Tensor::full([], *scalar, kind),
    }
}

fn kind(term: &Term) -> (DType, Device) {
    match term {
        Term::Tensor(tensor) => (tensor.dtype(), tensor.device()),
        Term::Scalar(_) => (DType::F32, Device::CPU),
    }
}

/// `scatter` knows two ways to combine, by names of its own.
fn combination(a: &Arguments<'_>) -> Result<Combine> {
    match a.get::<Option<String>>(KEYWORD, "reduce")?.as_deref() {
        None => Ok(Combine::Replace),
        Some("add") => Ok(Combine::Add),
        Some("multiply") => Ok(Combine::Multiply),
        Some(other) => Err(unknown("reduce", other)),
    }
}

fn reduction(a: &Arguments<'_>) -> Result<(Combine, bool)> {
    let how = match a.get::<String>(4, "reduce")?.as_str() {
        "sum" => Combine::Add,
        "prod" => Combine::Multiply,
        "mean" => Combine::Mean,
        "amax" => Combine::Largest,
        "amin" => Combine::Smallest,
        other => return Err(unknown("reduce", other)),
    };
    Ok((how, a.or(KEYWORD, "include_self", true)?))
}

/// `side` says the same as `right`, and must not say the opposite.
fn right(a: &Arguments<'_>) -> Result<bool> {
    let right: Option<bool> = a.get(KEYWORD, "right")?;
    match (a.get::<Option<String>>(KEYWORD, "side")?.as_deref(), right) {
        (None, right) => Ok(right.unwrap_or(false)),
        (Some("right"), _) => Ok(true),
        (Some("left"), None | Some(false)) => Ok(false),
        (Some(other), _) => Err(unknown("side", other)),
    }
}

fn unknown(argument: &str, text: &str) -> Error {
    Error::new(Cause::Argument, "", format_args!("argument {argument:?} cannot be {text:?} here"))
}
