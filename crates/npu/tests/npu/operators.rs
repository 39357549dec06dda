//! Every operator on the device equals the host's, over shapes, strides and broadcast forms.

use crate::support::{assert_close, npu, numbers};
use cresset_tensor::op::InPlace;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Op, Result, Scalar, Tensor};

pub(crate) type Compute<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

/// Computes on both sides and compares.
pub(crate) fn check(name: &str, inputs: &[Tensor], compute: Compute<'_>) {
    let there: Vec<Tensor> = inputs.iter().map(|x| x.to(npu()).unwrap()).collect();
    let expected = compute(inputs).unwrap_or_else(|error| panic!("{name} on the host: {error}"));
    let actual = compute(&there).unwrap_or_else(|error| panic!("{name} on the device: {error}"));
    assert_eq!(actual.len(), expected.len());
    for (actual, expected) in actual.iter().zip(&expected) {
        assert_eq!(actual.device(), npu(), "{name}");
        assert_close(name, actual, expected, 1e-6);
    }
}

/// Ways to look at a matrix whose elements lie differently in memory.
type View = fn(&Tensor) -> Result<Tensor>;
const VIEWS: [(&str, View); 4] = [
    ("plain", |x| Ok(x.clone())),
    ("transposed", |x| x.t()),
    ("every second", |x| x.as_strided(&[3, 2], &[4, 2], 1)),
    ("repeated", |x| x.as_strided(&[5, 4], &[0, 1], 4)),
];

fn for_views(name: &str, inputs: &[Tensor], compute: Compute<'_>) {
    for (view, look) in VIEWS {
        check(&format!("{name}, {view}"), inputs, &|inputs| {
            let views = inputs.iter().map(look).collect::<Result<Vec<_>>>()?;
            compute(&views)
        });
    }
}

/// A method of one tensor, as a table line.
type Unary = (&'static str, fn(&Tensor) -> Result<Tensor>);

#[test]
fn functions_of_one_operand() {
    let table: &[Unary] = &[
        ("neg", |x| x.neg()),
        ("exp", |x| x.exp()),
        ("log", |x| x.mul(x)?.add(0.5)?.log()),
        ("sqrt", |x| x.mul(x)?.sqrt()),
        ("reciprocal", |x| x.mul(x)?.add(0.5)?.reciprocal()),
        ("abs", |x| x.abs()),
        ("sign", |x| x.sign()),
        ("expm1", |x| x.expm1()),
        ("log1p", |x| x.abs()?.log1p()),
        ("log2", |x| x.mul(x)?.add(0.5)?.log2()),
        ("rsqrt", |x| x.mul(x)?.add(0.5)?.rsqrt()),
        ("sin", |x| x.sin()),
        ("atanh", |x| x.mul(0.9)?.atanh()),
        ("erf", |x| x.erf()),
        ("lgamma", |x| x.add(1.5)?.lgamma()),
        ("floor", |x| x.mul(7)?.floor()),
        ("round", |x| x.mul(7)?.round()),
        ("trunc of integers", |x| x.mul(7)?.to_dtype(DType::I32)?.trunc()),
        ("round_decimals", |x| x.round_decimals(2)),
        ("deg2rad", |x| x.deg2rad()),
        ("nan_to_num", |x| x.floor()?.log()?.nan_to_num(Some(3.0), None, None)),
        ("bitwise_not", |x| x.mul(9)?.to_dtype(DType::I64)?.bitwise_not()),
        ("logical_not", |x| x.floor()?.logical_not()),
        ("signbit", |x| x.signbit()),
        ("isfinite", |x| x.floor()?.log()?.isfinite()),
        ("tanh", |x| x.tanh()),
        ("sigmoid", |x| x.sigmoid()),
        ("relu", |x| x.relu()),
        ("softplus", |x| x.softplus(2.0, 1.0)),
        ("silu", |x| x.silu()),
        ("mish", |x| x.mish()),
        ("gelu", |x| x.gelu(Approximate::None)),
        ("gelu by tanh", |x| x.gelu(Approximate::Tanh)),
        ("elu", |x| x.elu(0.7)),
        ("leaky_relu", |x| x.leaky_relu(0.1)),
        ("hardswish", |x| x.mul(4)?.hardswish()),
        ("hardsigmoid", |x| x.mul(4)?.hardsigmoid()),
        ("hardtanh", |x| x.hardtanh(-0.5, 0.3)),
        ("hardshrink", |x| x.hardshrink(0.3)),
        ("softshrink", |x| x.softshrink(0.3)),
        ("threshold", |x| x.threshold(0.1, 2.0)),
        ("logsigmoid", |x| x.logsigmoid()),
        ("softmax", |x| x.softmax(-1)),
        ("min", |x| x.min()),
        ("argmin", |x| x.argmin(-1, false)),
        ("prod", |x| x.prod(None)),
        ("any", |x| x.floor()?.any()),
        ("all", |x| x.all()),
        ("norm", |x| x.vector_norm(3.0, &[], false, None)),
        ("median", |x| x.median()),
        ("cumsum", |x| x.cumsum(0, None)),
        ("cumprod", |x| x.cumprod(-1, None)),
        ("flip", |x| x.flip(&[0])),
        ("sum", |x| x.sum()),
        ("mean", |x| x.mean()),
        ("max", |x| x.max()),
        ("argmax", |x| x.argmax(-1, false)),
        ("log_softmax", |x| x.log_softmax(-1)),
        ("clone", |x| x.copy()),
        ("to f64", |x| x.to_dtype(DType::F64)),
    ];
    for (name, f) in table {
        for shape in [&[][..], &[1], &[7], &[3, 4], &[2, 3, 4], &[2, 1, 3, 2]] {
            check(&format!("{name} of {shape:?}"), &[numbers(shape, 1)], &|x| Ok(vec![f(&x[0])?]));
        }
        for_views(name, &[numbers(&[3, 4], 2)], &|x| Ok(vec![f(&x[0])?]));
    }
}

type Binary = (&'static str, fn(&Tensor, &Tensor) -> Result<Tensor>);

const BINARY: &[Binary] = &[
    ("add", |a, b| a.add(b)),
    ("add scaled", |a, b| a.add_scaled(b, -0.5)),
    ("sub", |a, b| a.sub(b)),
    ("rsub", |a, b| a.rsub(b)),
    ("mul", |a, b| a.mul(b)),
    ("div", |a, b| a.div(&b.mul(b)?.add(0.5)?)),
    ("pow", |a, b| a.mul(a)?.add(0.5)?.pow(b)),
    ("maximum", |a, b| a.maximum(b)),
    ("minimum", |a, b| a.minimum(b)),
    ("fmax", |a, b| a.fmax(b)),
    ("atan2", |a, b| a.atan2(b)),
    ("xlogy", |a, b| a.xlogy(&b.abs()?)),
    ("remainder", |a, b| a.remainder(&b.abs()?.add(0.2)?)),
    ("fmod", |a, b| a.fmod(&b.abs()?.add(0.2)?)),
    ("div by floor", |a, b| DivRounded { rounding: Rounding::Floor }.call((a, (&b.abs()?.add(0.2)?).into()))),
    ("floor_divide", |a, b| FloorDivide.call((a, (&b.abs()?.add(0.2)?).into()))),
    ("clamp between tensors", |a, b| a.clamp(b, 0.5)),
    ("gt", |a, b| a.gt(b)),
    ("ge", |a, b| a.ge(b)),
    ("lt", |a, b| a.lt(b)),
    ("le", |a, b| a.le(b)),
    ("ne", |a, b| a.ne(b)),
    ("logical_and", |a, b| a.floor()?.logical_and(&b.floor()?)),
    ("logical_xor", |a, b| a.floor()?.logical_xor(&b.floor()?)),
    ("bitwise_or", |a, b| a.mul(9)?.to_dtype(DType::I32)?.bitwise_or(&b.mul(9)?.to_dtype(DType::I32)?)),
    ("eq", |a, b| a.mul(2)?.eq(&b.add(b)?)),
];

#[test]
fn functions_of_two_operands_broadcast() {
    for (name, f) in BINARY {
        for (a, b) in [
            (&[3, 4][..], &[3, 4][..]),
            (&[3, 4], &[4]),
            (&[3, 1], &[1, 4]),
            (&[0, 4], &[1, 4]),
            (&[], &[2, 2]),
            (&[2, 3, 4], &[3, 1]),
        ] {
            let inputs = [numbers(a, 1), numbers(b, if a == b { 1 } else { 2 })];
            check(&format!("{name} of {a:?} and {b:?}"), &inputs, &|x| Ok(vec![f(&x[0], &x[1])?]));
        }
        for_views(name, &[numbers(&[3, 4], 1), numbers(&[3, 4], 2)], &|x| Ok(vec![f(&x[0], &x[1])?]));
    }
}

#[test]
fn element_types_meet_as_on_the_host() {
    use DType::*;
    let of = |dtype| numbers(&[2, 3], 5).mul(8.0).unwrap().to_dtype(dtype).unwrap();
    for (a, b) in [(F32, F64), (F16, F32), (BF16, F16), (I32, I64), (U8, I8), (I64, F32), (Bool, I32)] {
        for (name, f) in &BINARY[..5] {
            let fraction_of_integers = (*name, b.is_float()) == ("add scaled", false);
            let difference_of_truths = name.contains("sub") && a == Bool;
            if fraction_of_integers || difference_of_truths {
                continue;
            }
            let point = of(b).as_strided(&[], &[], 1).unwrap();
            check(&format!("{name} of {a} and {b}"), &[of(a), of(b)], &|x| Ok(vec![f(&x[0], &x[1])?]));
            check(&format!("{name} of {a} and one {b}"), &[of(a), point], &|x| Ok(vec![f(&x[0], &x[1])?]));
        }
        check(&format!("eq of {a} and {b}"), &[of(a), of(b)], &|x| Ok(vec![x[0].eq(&x[1])?]));
    }
}

#[test]
fn a_number_can_stand_for_an_operand() {
    let table: [Unary; 19] = [
        ("remainder", |x| x.remainder(0.3)),
        ("fmod of int", |x| x.mul(9)?.to_dtype(DType::I32)?.fmod(4)),
        ("clamp", |x| x.clamp(-0.25, 0.5)),
        ("clamp_min", |x| x.clamp_min(0.1)),
        ("maximum", |x| x.maximum(0.1)),
        ("pow of", |x| PowOf { base: Scalar::Float(2.5) }.call([x])),
        ("power of int", |x| x.mul(9)?.to_dtype(DType::I64)?.pow(5)),
        ("le", |x| x.le(0.25)),
        ("bitwise_and", |x| x.mul(9)?.to_dtype(DType::I32)?.bitwise_and(6)),
        ("add", |x| x.add(2.5)),
        ("add scaled", |x| x.add_scaled(3, 2)),
        ("sub", |x| x.sub(1)),
        ("rsub", |x| x.rsub(1.5)),
        ("mul", |x| x.mul(-2)),
        ("div", |x| x.div(3)),
        ("pow", |x| x.pow(2.0)),
        ("pow of int", |x| x.to_dtype(DType::I32)?.pow(2.0)),
        ("eq", |x| x.eq(0.0)),
        ("div of int", |x| x.to_dtype(DType::I64)?.div(2)),
    ];
    for (name, f) in table {
        for_views(name, &[numbers(&[3, 4], 3)], &|x| Ok(vec![f(&x[0])?]));
    }
}

#[test]
fn gradients_of_activations() {
    for_views("gradients", &[numbers(&[3, 4], 1), numbers(&[3, 4], 2)], &|x| {
        let [grad, y] = [&x[0], &x[1]];
        Ok(vec![
            ThresholdBackward { threshold: Scalar::Float(0.1) }.call([grad, y])?,
            SoftplusBackward { beta: 2.0.into(), threshold: 1.0.into() }.call([grad, y])?,
            TanhBackward.call([grad, y])?,
            SigmoidBackward.call([grad, y])?,
            LogSoftmaxBackward { dim: 1 }.call([grad, y])?,
            LogSoftmaxBackward { dim: 0 }.call([grad, y])?,
            SoftmaxBackward { dim: 1 }.call([grad, y])?,
            SiluBackward.call([grad, y])?,
            MishBackward.call([grad, y])?,
            GeluBackward { approximate: Approximate::None }.call([grad, y])?,
            GeluBackward { approximate: Approximate::Tanh }.call([grad, y])?,
            LeakyReluBackward { negative_slope: Scalar::Float(0.1), of_result: false }.call([grad, y])?,
            HardswishBackward.call([grad, y])?,
            HardtanhBackward { min: Scalar::Float(-0.2), max: Scalar::Float(0.5) }.call([grad, y])?,
            SoftshrinkBackward { lambda: Scalar::Float(0.3) }.call([grad, y])?,
            LogSigmoidBackward.call([grad, y, y])?,
        ])
    });
}

#[test]
fn choices_fill_and_copy() {
    for_views("where", &[numbers(&[3, 4], 1), numbers(&[3, 4], 2)], &|x| {
        let condition = x[0].relu()?.eq(0.0)?;
        Ok(vec![x[0].where_(&condition, &x[1])?])
    });
    check("fill", &[numbers(&[3, 4], 1)], &|x| {
        let (all, column) = (x[0].copy()?, x[0].copy()?);
        all.fill_(2.5)?;
        column.as_strided(&[3], &[4], 2)?.fill_(7)?;
        column.as_strided(&[3], &[4], 1)?.zero_()?;
        Ok(vec![all, column, Fill { value: Scalar::Int(3) }.call([&x[0]])?, Zero.call([&x[0]])?])
    });
    check("copy", &[numbers(&[3, 4], 1), numbers(&[4], 2)], &|x| {
        let (to, wide) = (x[0].copy()?, x[0].to_dtype(DType::F64)?);
        to.copy_(&x[1])?;
        wide.copy_(&x[0])?;
        let square = x[0].as_strided(&[3, 3], &[4, 1], 0)?.copy()?;
        square.copy_(&square.t()?.copy()?)?;
        Ok(vec![to, wide, square, Copy.call([&x[0], &x[1]])?])
    });
}

type Change<'a> = &'a dyn Fn(&Tensor) -> Result<()>;

#[test]
fn changes_in_place() {
    let inputs = [numbers(&[3, 3], 1), numbers(&[3, 3], 2), numbers(&[3], 3)];
    check("in place", &inputs, &|x| {
        let fresh = || x[0].copy();
        let changed: [(Tensor, Change<'_>); 10] = [
            (fresh()?, &|a| a.add_(&x[1])),
            (fresh()?, &|a| a.add_(0.5)),
            (fresh()?, &|a| a.add_scaled_(&x[2], -0.1)),
            (fresh()?, &|a| a.mul_(&x[1].t()?)),
            (fresh()?, &|a| a.mul_(3)),
            (fresh()?, &|a| a.add_(a)),
            (fresh()?, &|a| a.addcmul_(&x[1], &x[2], 0.3)),
            (fresh()?, &|a| a.addcdiv_(&x[1], &x[2].mul(&x[2])?.add(1)?, -0.3)),
            (fresh()?, &|a| a.lerp_(&x[1], 0.25)),
            (fresh()?, &|a| a.t()?.lerp_(&x[1], 0.75)),
        ];
        changed.into_iter().map(|(a, change)| change(&a).map(|()| a)).collect()
    });
    check("the same out of place", &inputs, &|x| {
        let value = Scalar::Float(0.3);
        Ok(vec![
            Addcmul { value }.call([&x[2], &x[1], &x[0]])?,
            Addcdiv { value }.call([&x[0], &x[1], &x[2].mul(&x[2])?.add(1)?])?,
            Lerp { weight: value }.call([&x[0], &x[1]])?,
        ])
    });
    assert_eq!(Lerp::IN_PLACE, "aten::lerp_");
}

#[test]
fn products() {
    for (m, k, n) in [(1, 1, 1), (3, 4, 5), (17, 33, 9), (64, 64, 64)] {
        let inputs = [numbers(&[m, k], 1), numbers(&[k, n], 2), numbers(&[n], 3), numbers(&[n, k], 4)];
        check(&format!("{m}x{k}x{n}"), &inputs, &|x| {
            let scaled = Addmm { beta: Scalar::Float(0.5), alpha: Scalar::Int(2) };
            Ok(vec![
                x[0].mm(&x[1])?,
                x[0].mm(&x[3].t()?)?,
                x[2].addmm(&x[0], &x[1])?,
                scaled.call([&x[2], &x[0], &x[1]])?,
                x[0].linear(&x[3], Some(&x[2]))?,
            ])
        });
    }
    check("stacks", &[numbers(&[3, 2, 4], 1), numbers(&[3, 4, 5], 2)], &|x| {
        Ok(vec![x[0].matmul(&x[1])?, Bmm.call([&x[1].transpose(1, 2)?, &x[0].transpose(1, 2)?])?])
    });
}

#[test]
fn reductions() {
    for_views("reductions", &[numbers(&[3, 4], 1)], &|x| {
        let x = &x[0];
        let [values, indices] = x.max_dim(0, true)?;
        Ok(vec![
            x.sum_dims(&[0], false)?,
            x.sum_dims(&[1], true)?,
            x.sum_dims(&[0, 1], true)?,
            x.sum_dims(&[], false)?,
            x.mean_dims(&[-1], false)?,
            x.mean_dims(&[], true)?,
            x.to_dtype(DType::I32)?.sum()?,
            x.eq(x)?.sum()?,
            values,
            indices,
            x.argmax(0, true)?,
            x.amax(&[0], false)?,
            x.amin(&[0, 1], true)?,
            x.prod_dim(0, false, None)?,
            x.any_dim(1, false)?,
            x.all_dims(&[0], true)?,
            x.var_dims(&[1], 1.0, false)?,
            x.std_dims(&[0], 0.0, true)?,
            x.var_dims(&[0], 0.5, false)?,
            x.vector_norm(2.0, &[1], true, None)?,
            x.logsumexp(&[0], false)?,
        ])
    });
    for_views("orders", &[numbers(&[3, 4], 1)], &|x| {
        let ranked = [
            x[0].sort(0, true, None)?,
            x[0].topk(2, 1, true, true)?,
            x[0].min_dim(1, false)?,
            x[0].kthvalue(2, 0, true)?,
            x[0].median_dim(1, false)?,
            x[0].cummax(0)?,
            x[0].var_mean(&[1], 1.0, false)?,
        ];
        Ok(ranked.into_iter().flatten().collect())
    });
    check("max of a number", &[numbers(&[], 1)], &|x| {
        let [values, indices] = x[0].max_dim(0, false)?;
        Ok(vec![values, indices, x[0].argmax(0, false)?])
    });
}

#[test]
fn products_with_vectors_sums_and_integers() {
    let inputs = [numbers(&[3, 4], 1), numbers(&[4, 5], 2), numbers(&[4], 3), numbers(&[3], 4)];
    check("vectors", &inputs, &|x| {
        Ok(vec![x[0].mv(&x[2])?, x[2].dot(&x[2])?, x[3].addmv(&x[0], &x[2])?, x[3].outer(&x[2])?])
    });
    check("integers", &inputs, &|x| {
        let [a, b, v] = [0, 1, 2].map(|i| x[i].mul(9).and_then(|x| x.to_dtype(DType::I64)));
        let (a, b, v) = (a?, b?, v?);
        Ok(vec![
            a.mm(&b)?,
            a.mv(&v)?,
            v.dot(&v)?,
            a.t()?.addmm_scaled(&b, &b.t()?.narrow(1, 0, 3)?, 3, 2)?,
            a.unsqueeze(0)?.bmm(&b.unsqueeze(0)?)?,
        ])
    });
    let stacks = [numbers(&[3, 2, 4], 1), numbers(&[3, 4, 5], 2), numbers(&[2, 5], 3)];
    check("sums of stacks", &stacks, &|x| {
        Ok(vec![
            x[2].baddbmm_scaled(&x[0], &x[1], 0.5, 2)?,
            x[2].addbmm_scaled(&x[0], &x[1], 0, 1)?,
            x[2].addbmm(&x[0], &x[1])?,
        ])
    });
}

#[test]
fn what_the_library_refuses_is_told_in_its_words() {
    let x = numbers(&[2, 2], 1).to(npu()).unwrap();
    let loss = DistanceLoss { distance: SmoothL1 { beta: -1.0 }, reduction: Reduction::Sum };
    let error = loss.call([&x, &x]).unwrap_err().to_string();
    let words = "aclnnSmoothL1LossGetWorkspaceSize failed with code 161002 (ACLNN_ERR_PARAM_INVALID): \
                 aclnnSmoothL1Loss: beta is -1";
    assert!(error.contains(words), "{error}");
}
