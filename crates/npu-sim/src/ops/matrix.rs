//! Products of matrices.

use super::cast::{FLOATS, Temporary, compute, expect_dtype, promote};
use super::shape::{broadcast_to, common, expect, expect_rank};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::{code, constant};
use cresset_kernels::functions::Unary;
use cresset_kernels::{DType, Float, Layout, Scalar, View, ViewMut, elementwise, f16, matrix};

pub(crate) fn mm(x: Tensor, other: Tensor, out: Tensor, cube: i8) -> Planned {
    let (dtype, precision) = check([("x", &x), ("other", &other)], 2, &out, cube)?;
    let flops = flops(x.shape(), &out);
    let plan = compute(c"MatMulV2", [x, other], dtype, out, dtype, move |[a, b], out| {
        precision.apply([a, b], |[a, b]| matrix::gemm(1.0, a, b, 0.0, out));
    });
    plan.map(|plan| plan.on_cube().with_flops(flops))
}

pub(crate) fn addmm(
    x: Tensor,
    a: Tensor,
    b: Tensor,
    beta: Scalar,
    alpha: Scalar,
    out: Tensor,
    cube: i8,
) -> Planned {
    let (dtype, precision) = check([("a", &a), ("b", &b)], 2, &out, cube)?;
    added(c"MatMulV2", [x, a, b], [alpha, beta], dtype, precision, out)
}

pub(crate) fn batch_matmul(x: Tensor, other: Tensor, out: Tensor, cube: i8) -> Planned {
    let (dtype, precision) = check([("x", &x), ("other", &other)], 3, &out, cube)?;
    let inputs = stacks(x, other, out.shape()[0])?;
    let flops = flops(inputs[0].shape(), &out);
    let plan = compute(c"BatchMatMulV2", inputs, dtype, out, dtype, move |[a, b], out| {
        precision.apply([a, b], |[a, b]| matrix::batched_gemm(1.0, a, b, 0.0, out));
    });
    plan.map(|plan| plan.on_cube().with_flops(flops))
}

/// Two stacks of so many matrices each, which may be one repeated.
fn stacks(a: Tensor, b: Tensor, batch: usize) -> Result<[Tensor; 2]> {
    let repeat = |name, x: &Tensor| broadcast_to(name, x, &[&[batch], &x.shape()[1..]].concat());
    Ok([repeat("a", &a)?, repeat("b", &b)?])
}

pub(crate) fn baddbmm(
    x: Tensor,
    a: Tensor,
    b: Tensor,
    beta: Scalar,
    alpha: Scalar,
    out: Tensor,
    cube: i8,
) -> Planned {
    let (dtype, precision) = check([("a", &a), ("b", &b)], 3, &out, cube)?;
    let [a, b] = stacks(a, b, out.shape()[0])?;
    added(c"BatchMatMulV2", [x, a, b], [alpha, beta], dtype, precision, out)
}

/// `alpha * a @ b + beta * x`, of matrices or stacks of them.
fn added(
    kernel: &'static std::ffi::CStr,
    [x, a, b]: [Tensor; 3],
    [alpha, beta]: [Scalar; 2],
    dtype: DType,
    precision: Precision,
    out: Tensor,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    let dtype = promote(x.dtype(), dtype);
    let x = broadcast_to("x", &x, out.shape())?;
    let (alpha, beta, flops) = (alpha.as_f64(), beta.as_f64(), flops(a.shape(), &out));
    let plan = compute(kernel, [x, a, b], dtype, out, dtype, move |[x, a, b], mut out| {
        precision.apply([a, b], |[a, b]| match beta == 0.0 {
            true if out.shape().len() == 2 => matrix::gemm(alpha, a, b, 0.0, out.reborrow()),
            true => matrix::batched_gemm(alpha, a, b, 0.0, out.reborrow()),
            false => matrix::added_gemm(alpha, a, b, beta, x, out.reborrow()),
        });
    });
    plan.map(|plan| plan.on_cube().with_flops(flops))
}

pub(crate) fn addbmm(
    x: Tensor,
    a: Tensor,
    b: Tensor,
    beta: Scalar,
    alpha: Scalar,
    out: Tensor,
    cube: i8,
) -> Planned {
    for (name, factor) in [("a", &a), ("b", &b)] {
        expect_rank(name, factor, 3)?;
        expect_dtype(name, factor, FLOATS)?;
    }
    let (&[batch, rows, depth], &[_, _, columns]) = (a.shape(), b.shape()) else { unreachable!("of rank 3") };
    expect("b", &b, &[batch, depth, columns])?;
    expect("out", &out, &[rows, columns])?;
    let dtype = promote(x.dtype(), promote(a.dtype(), b.dtype()));
    let precision = Precision::new(cube, dtype)?;
    expect_dtype("x", &x, FLOATS)?;
    let x = broadcast_to("x", &x, out.shape())?;
    let (alpha, beta, flops) = (alpha.as_f64(), beta.as_f64(), flops(a.shape(), &out) * batch as u64);
    let plan = compute(c"BatchMatMulV2", [x, a, b], dtype, out, dtype, move |[x, a, b], mut out| {
        match beta == 0.0 {
            true => elementwise::fill(Scalar::Int(0), out.reborrow()),
            false => elementwise::copy(x, out.reborrow()),
        }
        precision.apply([a, b], |[a, b]| {
            let mut factor = beta;
            for i in 0..batch {
                let (left, right) = (a.layout().select(0, i), b.layout().select(0, i));
                matrix::gemm(alpha, a.with_layout(&left), b.with_layout(&right), factor, out.reborrow());
                factor = 1.0;
            }
        });
    });
    plan.map(|plan| plan.on_cube().with_flops(flops))
}

pub(crate) fn mv(x: Tensor, vector: Tensor, out: Tensor, cube: i8) -> Planned {
    expect_rank("vector", &vector, 1)?;
    expect_rank("out", &out, 1)?;
    mm(x, column(&vector), column(&out), cube)
}

pub(crate) fn addmv(
    x: Tensor,
    a: Tensor,
    vector: Tensor,
    alpha: Scalar,
    beta: Scalar,
    out: Tensor,
    cube: i8,
) -> Planned {
    expect_rank("vector", &vector, 1)?;
    expect_rank("out", &out, 1)?;
    let x = column(&broadcast_to("x", &x, out.shape())?);
    addmm(x, a, column(&vector), beta, alpha, column(&out), cube)
}

pub(crate) fn dot(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    expect_rank("x", &x, 1)?;
    expect_rank("other", &other, 1)?;
    expect_rank("out", &out, 0)?;
    let row = x.with_layout(x.layout().unsqueeze(0));
    let out = out.with_layout(out.layout().unsqueeze(0).unsqueeze(0));
    mm(row, column(&other), out, constant::cube::KEEP_DTYPE)
}

/// A vector as a matrix of one column.
fn column(x: &Tensor) -> Tensor {
    x.with_layout(x.layout().unsqueeze(1))
}

/// The product of operands of any rank, as frameworks define it: vectors are rows or columns, and further
/// dimensions are broadcast.
pub(crate) fn matmul(x: Tensor, other: Tensor, out: Tensor, cube: i8) -> Planned {
    if x.shape().is_empty() || other.shape().is_empty() {
        fail!(code::NN_PARAM_INVALID, "{:?} and {:?} cannot be multiplied", x.shape(), other.shape());
    }
    let (is_row, is_column) = (x.shape().len() == 1, other.shape().len() == 1);
    let a = if is_row { x.with_layout(x.layout().unsqueeze(0)) } else { x };
    let b = if is_column { column(&other) } else { other };
    let mut whole = out.layout().clone();
    if is_column {
        whole = whole.unsqueeze(whole.rank());
    }
    if is_row {
        whole = whole.unsqueeze(whole.rank() - 1);
    }
    stacked(a, b, out.with_layout(whole), cube)
}

pub(crate) fn matmul_weight_nz(x: Tensor, other: Tensor, out: Tensor, cube: i8) -> Planned {
    matmul(x, other, out, cube)
}

fn stacked(a: Tensor, b: Tensor, out: Tensor, cube: i8) -> Planned {
    let (more_a, [m, k]) = ends(a.shape());
    let (more_b, [k2, n]) = ends(b.shape());
    if k != k2 {
        fail!(code::NN_PARAM_INVALID, "{:?} and {:?} cannot be multiplied", a.shape(), b.shape());
    }
    let batch = common(more_a, more_b)?;
    expect("out", &out, &[&batch[..], &[m, n]].concat())?;
    for (name, tensor) in [("x", &a), ("other", &b), ("out", &out)] {
        expect_dtype(name, tensor, FLOATS)?;
    }
    let dtype = promote(a.dtype(), b.dtype());
    let precision = Precision::new(cube, dtype)?;
    let a = broadcast_to("x", &a, &[&batch[..], &[m, k]].concat())?;
    let b = broadcast_to("other", &b, &[&batch[..], &[k, n]].concat())?;
    let flops = flops(a.shape(), &out);
    let plan = compute(c"BatchMatMulV2", [a, b], dtype, out, dtype, move |[a, b], mut out| {
        precision.apply([a, b], |[a, b]| {
            for at in 0..batch.iter().product() {
                let [a_part, b_part, to] =
                    [a.layout(), b.layout(), out.layout()].map(|layout| matrix_at(layout, &batch, at));
                let (a, b) = (a.with_layout(&a_part), b.with_layout(&b_part));
                matrix::gemm(1.0, a, b, 0.0, out.with_layout(&to));
            }
        });
    });
    plan.map(|plan| plan.on_cube().with_flops(flops))
}

/// The last two sizes, and those before.
fn ends(shape: &[usize]) -> (&[usize], [usize; 2]) {
    let (more, last) = shape.split_at(shape.len() - 2);
    (more, [last[0], last[1]])
}

/// One matrix of a stack with leading dimensions `batch`, by its number.
fn matrix_at(layout: &Layout, batch: &[usize], mut at: usize) -> Layout {
    let mut layout = layout.clone();
    for dim in (0..batch.len()).rev() {
        layout = layout.select(dim, at % batch[dim]);
        at /= batch[dim];
    }
    layout
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    alpha: f32,
    beta: f32,
    transpose_a: i64,
    transpose_b: i64,
    out: Tensor,
    cube: i8,
) -> Planned {
    expect_rank("a", &a, 2)?;
    expect_rank("b", &b, 2)?;
    let turned = |x: Tensor, turn: i64| if turn == 0 { x } else { x.with_layout(x.layout().transpose(0, 1)) };
    let (a, b) = (turned(a, transpose_a), turned(b, transpose_b));
    addmm(c, a, b, Scalar::Float(beta.into()), Scalar::Float(alpha.into()), out, cube)
}

/// Brings a weight into tiles, which lie as before on this device.
pub(crate) fn trans_matmul_weight(x: Tensor) -> Planned {
    expect_dtype("x", &x, &[DType::F16, DType::BF16, DType::F32, DType::I8])?;
    Plan::new(c"TransData", [x], [], |_, []| Ok(()))
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn weight_quant_batch_matmul_v2(
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    offset: Option<Tensor>,
    quant_scale: Option<Tensor>,
    quant_offset: Option<Tensor>,
    bias: Option<Tensor>,
    group: i32,
    out: Tensor,
) -> Planned {
    if quant_scale.is_some() || quant_offset.is_some() {
        fail!(code::NN_PARAM_INVALID, "results in integers are not simulated");
    }
    expect_rank("x", &x, 2)?;
    expect_rank("weight", &weight, 2)?;
    expect_dtype("x", &x, &[DType::F16, DType::BF16])?;
    expect_dtype("weight", &weight, &[DType::I8])?;
    expect_dtype("out", &out, &[x.dtype()])?;
    let (&[rows, depth], &[_, columns]) = (x.shape(), weight.shape()) else { unreachable!("of rank 2") };
    expect("weight", &weight, &[depth, columns])?;
    expect("out", &out, &[rows, columns])?;
    let group = if group > 0 { group as usize } else { depth };
    let groups = depth.div_ceil(group.max(1));
    for (name, tensor) in [("scale", Some(&scale)), ("offset", offset.as_ref())] {
        let Some(tensor) = tensor else { continue };
        if ![1, columns, groups * columns].contains(&tensor.layout().len()) {
            fail!(code::NN_PARAM_INVALID, "{name} {:?} for weight {:?}", tensor.shape(), weight.shape());
        }
    }
    let (has_offset, has_bias) = (offset.is_some(), bias.is_some());
    let reads = [x, weight, scale.clone(), offset.unwrap_or(scale.clone()), bias.unwrap_or(scale)];
    let plan = Plan::new(
        c"WeightQuantBatchMatmulV2",
        reads,
        [out],
        move |[x, weight, scale, offset, bias], [out]| {
            use super::numbers::{numbers, singles, store};
            let at = |row: usize, column: usize, count: usize| match count {
                1 => 0,
                count if count == columns => column,
                _ => row / group * columns + column,
            };
            let (scale, offset) = (numbers(scale), numbers(offset));
            let shift = |row, column| if has_offset { offset[at(row, column, offset.len())] } else { 0.0 };
            let weight: Vec<f32> = numbers(weight)
                .into_iter()
                .enumerate()
                .map(|(place, weight)| {
                    let (row, column) = (place / columns, place % columns);
                    ((weight + shift(row, column)) * scale[at(row, column, scale.len())]) as f32
                })
                .collect();
            let mut product = vec![0.0; rows * columns];
            multiply(&singles(x), &weight, [rows, depth, columns], &mut product);
            if has_bias {
                let bias = singles(bias);
                product.iter_mut().enumerate().for_each(|(at, x)| *x += bias[at % columns]);
            }
            store(&product, out);
            Ok(())
        },
    );
    plan.map(Plan::on_cube)
}

/// `out = a @ b` of row-major matrices `[m, k]` and `[k, n]`.
pub(super) fn multiply(a: &[f32], b: &[f32], [m, k, n]: [usize; 3], out: &mut [f32]) {
    let layout = |rows, columns| Layout::contiguous(&[rows, columns]).expect("as many elements as there are");
    let (left, right, result) = (layout(m, k), layout(k, n), layout(m, n));
    matrix::gemm(1.0, View::of(a, &left), View::of(b, &right), 0.0, ViewMut::of(out, &result));
}

/// Checks ranks, sizes and types of a product; gives the type it is computed in, and how exactly.
fn check(factors: [(&str, &Tensor); 2], rank: usize, out: &Tensor, cube: i8) -> Result<(DType, Precision)> {
    for (name, x) in factors {
        expect_rank(name, x, rank)?;
        expect_dtype(name, x, FLOATS)?;
    }
    expect_dtype("out", out, FLOATS)?;
    let (a, b) = (factors[0].1.shape(), factors[1].1.shape());
    if a[rank - 1] != b[rank - 2] {
        fail!(code::NN_PARAM_INVALID, "{a:?} and {b:?} cannot be multiplied");
    }
    let mut shape = [&a[..rank - 1], &b[rank - 1..]].concat();
    if rank == 3 {
        shape[0] = shape[0].max(b[0]);
    }
    expect("out", out, &shape)?;
    let dtype = promote(factors[0].1.dtype(), factors[1].1.dtype());
    Ok((dtype, Precision::new(cube, dtype)?))
}

/// Multiplications and additions that make `out` from rows of `a`.
fn flops(a: &[usize], out: &Tensor) -> u64 {
    2 * (out.layout().len() * a.last().copied().unwrap_or(1)) as u64
}

/// What factors of single precision are rounded to before they are multiplied.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Precision {
    /// Nothing: as they are.
    Full,
    /// Eleven bits after the first: what the hardware's fast mode has.
    Hf32,
    /// Half precision.
    Half,
}

impl Precision {
    pub(super) fn new(cube: i8, dtype: DType) -> Result<Precision> {
        Ok(match cube {
            _ if !(0..=4).contains(&cube) => {
                fail!(code::NN_PARAM_INVALID, "there is no precision {cube} of matrix products")
            }
            1 | 3 if dtype == DType::F32 => Precision::Hf32,
            2 if dtype == DType::F32 => Precision::Half,
            _ => Precision::Full,
        })
    }

    /// Runs `body` with factors as this precision has them.
    pub(super) fn apply<const N: usize, R>(
        self,
        factors: [View<'_>; N],
        body: impl FnOnce([View<'_>; N]) -> R,
    ) -> R {
        if self == Precision::Full {
            return body(factors);
        }
        let rounded = factors.map(|x| {
            let rounded = Temporary::new(x.dtype(), x.shape());
            rounded.write(|to| elementwise::unary(self, x, to));
            rounded
        });
        let locks = rounded.each_ref().map(Temporary::lock);
        body(std::array::from_fn(|at| rounded[at].view(&locks[at])))
    }
}

impl Unary for Precision {
    fn apply<T: Float>(self, x: T) -> T {
        let x = x.wide() as f32;
        T::narrow(match self {
            Precision::Full => x,
            // Half of the last bit that stays, so that cutting the others off rounds.
            Precision::Hf32 if x.is_finite() => f32::from_bits((x.to_bits() + 0x800) & !0xfff),
            Precision::Hf32 => x,
            Precision::Half => f16::from_f32(x).to_f32(),
        } as f64)
    }
}
