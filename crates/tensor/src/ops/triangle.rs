//! Triangles of matrices.

use crate::op::{InPlace, kernel_table};
use crate::{Backward, Cause, DType, Device, Error, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::arrange;

macro_rules! triangles {
    ($($(#[$doc:meta])* $op:ident, $method:ident, $method_:ident: $name:literal, $in_place:literal, $backward:literal, $kernel:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// How far the diagonal that bounds it lies above the main one.
            pub diagonal: isize,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; ctx.grad().$method(self.diagonal)?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                visit(Argument::Int(self.diagonal as i64));
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                if x.dim() >= 2 {
                    return Ok(Spec::like(x));
                }
                let text = format_args!("expects two dimensions or more, not shape {:?}", x.shape());
                Err(Error::new(Cause::Shape, Self::NAME, text))
            }

            /// Torch's kernel reads matrices that follow each other.
            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let out = self.room([x])?;
                let plain = if stacked(x) { x.clone() } else { x.contiguous()? };
                self.fill([&plain], &out, Device::CPU)?;
                Ok(Some(out))
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                cpu::map(x, x.dtype(), out, |x, out| $kernel(x, self.diagonal, out))
            }
        }

        impl InPlace for $op {
            const IN_PLACE: &'static str = $in_place;
            kernel_table!(in place $op);
        }

        impl Tensor {
            $(#[$doc])*
            ///
            /// The bounding diagonal lies `diagonal` above the main one.
            pub fn $method(&self, diagonal: isize) -> Result<Tensor> {
                $op { diagonal }.call([self])
            }

            #[doc = concat!("As [`", stringify!($method), "`](Tensor::", stringify!($method), "), in place.")]
            pub fn $method_(&self, diagonal: isize) -> Result<()> {
                $op { diagonal }.call_in_place([self])
            }
        }
    )*};
}

/// Whether matrices follow each other without gaps, however they lie themselves.
fn stacked(x: &Tensor) -> bool {
    let (stack, matrix) = x.shape().split_at(x.dim() - 2);
    let mut step = matrix.iter().product::<usize>();
    x.numel() == 0
        || (0..stack.len()).rev().all(|dim| {
            let fits = x.strides()[dim] == step;
            step *= stack[dim];
            fits
        })
}

triangles! {
    /// The last two dimensions with zeros above a diagonal.
    Tril, tril, tril_: "aten::tril", "aten::tril_", "TrilBackward0", arrange::lower;
    /// The last two dimensions with zeros below a diagonal.
    Triu, triu, triu_: "aten::triu", "aten::triu_", "TriuBackward0", arrange::upper;
}

impl Tensor {
    /// Rows and columns of the elements on and below a diagonal of a matrix, as `dtype`.
    pub fn tril_indices(rows: usize, columns: usize, offset: isize, dtype: DType) -> Result<Tensor> {
        let end = |row: usize| offset.saturating_add_unsigned(row).saturating_add(1);
        let count = below(rows, columns, offset);
        let start = offset.min(0).unsigned_abs().min(rows);
        triangle_indices("aten::tril_indices", start..rows, count, dtype, |row| {
            0..usize::try_from(end(row)).unwrap_or(0).min(columns)
        })
    }

    /// Rows and columns of the elements on and above a diagonal of a matrix, as `dtype`.
    pub fn triu_indices(rows: usize, columns: usize, offset: isize, dtype: DType) -> Result<Tensor> {
        let start = |row: usize| usize::try_from(offset.saturating_add_unsigned(row)).unwrap_or(0);
        let all = (rows as i128).checked_mul(columns as i128);
        let count = all.and_then(|all| Some(all - below(rows, columns, offset.saturating_sub(1))?));
        triangle_indices("aten::triu_indices", 0..rows, count, dtype, |row| start(row).min(columns)..columns)
    }
}

/// How many elements of a matrix lie on and below a diagonal, unless that is beyond counting.
fn below(rows: usize, columns: usize, offset: isize) -> Option<i128> {
    let columns = columns as i128;
    // Rows are ever longer by one, up to the width: how many elements all up to one of length `last` have.
    let up_to = |last: i128| match last {
        ..=0 => Some(0),
        _ if last <= columns => Some(last * (last + 1) / 2),
        _ => (last - columns).checked_mul(columns)?.checked_add(columns * (columns + 1) / 2),
    };
    let first = offset as i128 + 1;
    Some(up_to(first + rows as i128 - 1)? - up_to(first - 1)?)
}

fn triangle_indices(
    op: &'static str,
    rows: std::ops::Range<usize>,
    count: Option<i128>,
    dtype: DType,
    columns: impl Fn(usize) -> std::ops::Range<usize>,
) -> Result<Tensor> {
    if !matches!(dtype, DType::I64 | DType::I32) {
        let text = format_args!("indices are i64 or i32, not {dtype}");
        return Err(Error::new(Cause::DType, op, text));
    }
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or_else(|| Error::new(Cause::Memory, op, "more elements than can be counted"))?;
    let out = Tensor::uninit(&[2, count], DType::I64, Device::CPU).map_err(|error| error.in_op(op))?;
    {
        let mut writing = out.write();
        let mut elements = out.elements_mut(&mut writing);
        let elements = elements.slice::<i64>().expect("a fresh tensor is contiguous");
        let (first, second) = elements.split_at_mut(count);
        let places = rows.flat_map(|row| columns(row).map(move |column| (row, column)));
        for ((first, second), (row, column)) in first.iter_mut().zip(second).zip(places) {
            (*first, *second) = (row as i64, column as i64);
        }
    }
    out.to_dtype(dtype)
}
