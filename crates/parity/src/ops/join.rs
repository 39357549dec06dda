//! Joining, padding, repeating.

use super::Entry;
use crate::arguments::{Arguments, KEYWORD, Term};
use cresset_tensor::ops::{Indexing, Padding};
use cresset_tensor::{Cause, DType, Error, Result, Scalar, Tensor};

fn x(a: &Arguments<'_>) -> Result<Tensor> {
    a.get(0, "input")
}

/// Calls `join` with a list of tensors.
fn joined<T>(tensors: Vec<Tensor>, join: impl FnOnce(&[&Tensor]) -> Result<T>) -> Result<T> {
    join(&tensors.iter().collect::<Vec<_>>())
}

fn all<T>(a: &Arguments<'_>, join: impl FnOnce(&[&Tensor]) -> Result<T>) -> Result<T> {
    joined(a.rest(0, "tensors")?, join)
}

fn list<T>(a: &Arguments<'_>, join: impl FnOnce(&[&Tensor]) -> Result<T>) -> Result<T> {
    joined(a.list(0, "tensors")?, join)
}

fn diagonal(a: &Arguments<'_>) -> Result<[isize; 3]> {
    Ok([a.or(1, "offset", 0)?, a.or(2, "dim1", -2)?, a.or(3, "dim2", -1)?])
}

fn padding(a: &Arguments<'_>) -> Result<Padding> {
    let value: Option<Scalar> = a.get(3, "value")?;
    Ok(match a.or(2, "mode", "constant".to_owned())?.as_str() {
        "constant" => value.map_or(Padding::Zeros, Padding::Constant),
        "reflect" if value.is_none() => Padding::Reflect,
        "replicate" if value.is_none() => Padding::Replicate,
        "circular" if value.is_none() => Padding::Circular,
        other => {
            let text = format_args!("there is no padding {other:?} with value {value:?}");
            return Err(Error::new(Cause::Argument, "pad", text));
        }
    })
}

fn indexing(a: &Arguments<'_>) -> Result<Indexing> {
    match a.or(KEYWORD, "indexing", "ij".to_owned())?.as_str() {
        "ij" => Ok(Indexing::Matrix),
        "xy" => Ok(Indexing::Cartesian),
        other => Err(Error::new(Cause::Argument, "meshgrid", format_args!("there is no indexing {other:?}"))),
    }
}

fn triangle_indices(
    a: &Arguments<'_>,
    make: fn(usize, usize, isize, DType) -> Result<Tensor>,
) -> Result<Tensor> {
    let options = a.options(DType::I64)?;
    make(a.size(0, "row")?, a.size(1, "col")?, a.or(2, "offset", 0)?, options.dtype)?.to(options.device)
}

pub(super) const OPS: &[Entry] = &[
    Entry::one("block_diag", |a| all(a, Tensor::block_diag)),
    Entry::many("broadcast_tensors", |a| all(a, Tensor::broadcast_tensors)),
    Entry::one("cartesian_prod", |a| all(a, Tensor::cartesian_prod)),
    Entry::one("cat", |a| {
        let dim = a.or(1, "dim", 0)?;
        list(a, |tensors| Tensor::cat(tensors, dim))
    }),
    Entry::one("column_stack", |a| list(a, Tensor::column_stack)),
    Entry::one("constant_pad_nd", |a| {
        x(a)?.constant_pad_nd(&a.get::<Vec<isize>>(1, "pad")?, a.or(2, "value", Scalar::Int(0))?)
    }),
    Entry::one("diag", |a| x(a)?.diag(a.or(1, "diagonal", 0)?)),
    Entry::one("diag_embed", |a| {
        let [offset, dim1, dim2] = diagonal(a)?;
        x(a)?.diag_embed(offset, dim1, dim2)
    }),
    Entry::one("diagflat", |a| x(a)?.diagflat(a.or(1, "offset", 0)?)),
    Entry::one("dstack", |a| list(a, Tensor::dstack)),
    Entry::one("flip", |a| x(a)?.flip(&a.rest::<isize>(1, "dims")?)),
    Entry::one("fliplr", |a| x(a)?.fliplr()),
    Entry::one("flipud", |a| x(a)?.flipud()),
    Entry::one("hstack", |a| list(a, Tensor::hstack)),
    Entry::many("meshgrid", |a| {
        let indexing = indexing(a)?;
        all(a, |tensors| Tensor::meshgrid(tensors, indexing))
    }),
    Entry::one("nn.functional.pad", |a| x(a)?.pad(&a.get::<Vec<isize>>(1, "pad")?, padding(a)?)),
    Entry::one("repeat", |a| x(a)?.repeat(a.rest::<isize>(1, "repeats")?)),
    Entry::one("repeat_interleave", |a| {
        let (dim, size): (Option<isize>, Option<usize>) = (a.get(2, "dim")?, a.get(KEYWORD, "output_size")?);
        let out = match a.get(1, "repeats")? {
            Term::Tensor(times) => x(a)?.repeat_interleave_each(&times, dim)?,
            Term::Scalar(_) => x(a)?.repeat_interleave(a.size(1, "repeats")?, dim)?,
        };
        let along = out.shape()[dim.map_or(0, |dim| dim.rem_euclid(out.dim() as isize)).unsigned_abs()];
        match size.filter(|size| *size != along) {
            Some(size) => {
                let text = format_args!("makes {along} indices, not {size}");
                Err(Error::new(Cause::Argument, "repeat_interleave", text))
            }
            None => Ok(out),
        }
    }),
    Entry::one("roll", |a| {
        x(a)?.roll(&a.get::<Vec<isize>>(1, "shifts")?, &a.or::<Vec<isize>>(2, "dims", vec![])?)
    }),
    Entry::one("rot90", |a| {
        let dims: Vec<isize> = a.or(2, "dims", vec![0, 1])?;
        let dims = <[isize; 2]>::try_from(dims).map_err(|dims| {
            Error::new(Cause::Argument, "rot90", format_args!("{dims:?} are not two dimensions"))
        })?;
        x(a)?.rot90(a.or(1, "k", 1)?, dims)
    }),
    Entry::one("stack", |a| {
        let dim = a.or(1, "dim", 0)?;
        list(a, |tensors| Tensor::stack(tensors, dim))
    }),
    Entry::one("tile", |a| x(a)?.tile(a.rest::<isize>(1, "dims")?)),
    Entry::one("tril", |a| x(a)?.tril(a.or(1, "diagonal", 0)?))
        .in_place(|x, a| x.tril_(a.or(1, "diagonal", 0)?)),
    Entry::one("tril_indices", |a| triangle_indices(a, Tensor::tril_indices)),
    Entry::one("triu", |a| x(a)?.triu(a.or(1, "diagonal", 0)?))
        .in_place(|x, a| x.triu_(a.or(1, "diagonal", 0)?)),
    Entry::one("triu_indices", |a| triangle_indices(a, Tensor::triu_indices)),
    Entry::one("vstack", |a| list(a, Tensor::vstack)),
];
