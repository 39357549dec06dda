//! Every operator on the device equals the host's, over shapes, strides and broadcast forms.

use crate::support::{assert_close, npu, numbers};
use cresset_tensor::op::InPlace;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Op, Result, Scalar, Tensor};

type Compute<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

/// Computes on both sides and compares.
fn check(name: &str, inputs: &[Tensor], compute: Compute<'_>) {
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
        ("tanh", |x| x.tanh()),
        ("sigmoid", |x| x.sigmoid()),
        ("relu", |x| x.relu()),
        ("softplus", |x| x.softplus(2.0, 1.0)),
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
    ("gt", |a, b| a.gt(b)),
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
    let table: [Unary; 10] = [
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
        ])
    });
    check("max of a number", &[numbers(&[], 1)], &|x| {
        let [values, indices] = x[0].max_dim(0, false)?;
        Ok(vec![values, indices, x[0].argmax(0, false)?])
    });
}

#[test]
fn losses() {
    let target = Tensor::new([1i64, 0, 3, -100, 2]).unwrap();
    let inputs = [numbers(&[5, 4], 1), target, numbers(&[4], 2), numbers(&[5], 3)];
    for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
        for weighted in [false, true] {
            check(&format!("{reduction:?}, weighted {weighted}"), &inputs, &|x| {
                let (scores, weight) = (x[0].log_softmax(1)?, x[2].mul(&x[2])?.add(0.1)?);
                let weight = weighted.then_some(&weight);
                let loss = NllLoss { reduction, ignore_index: -100 };
                let [losses, total] = loss.call(([&scores, &x[1]], weight))?;
                let grad = if losses.dim() == 0 { losses.clone() } else { x[3].clone() };
                let back = NllLossBackward { reduction, ignore_index: -100 };
                let gradient = back.call(([&grad, &scores, &x[1], &total], weight))?;
                Ok(vec![losses, total, gradient])
            });
        }
    }
}

#[test]
fn rows_by_index() {
    let indices = Tensor::new([[2i64, 0, 2], [1, 3, 0]]).unwrap();
    let row = Tensor::new([3i64, 1, 1]).unwrap();
    let inputs = [numbers(&[4, 5], 1), indices, row, numbers(&[2, 3, 5], 2), numbers(&[3, 5], 3)];
    check("rows", &inputs, &|x| {
        Ok(vec![
            x[0].embedding(&x[1], None)?,
            x[0].embedding(&x[1].to_dtype(DType::I32)?, None)?,
            EmbeddingDenseBackward { padding: None, rows: 4, scale_by_frequency: true }
                .call([&x[3], &x[1]])?,
            EmbeddingDenseBackward { padding: Some(2), rows: 4, scale_by_frequency: false }
                .call([&x[3], &x[1]])?,
            x[0].index_select(0, &x[2])?,
            x[0].index_select(-1, &x[2])?,
            x[0].t()?.index_select(0, &x[2])?,
            x[0].index_add(0, &x[2], &x[4])?,
            x[0].index_add_scaled(0, &x[2], &x[4], -2)?,
            x[0].t()?.index_add(1, &x[2], &x[4].t()?)?,
        ])
    });
}

#[test]
fn steps_of_adam() {
    let base = AdamStep {
        lr: 0.01,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.0,
        decoupled: false,
        amsgrad: false,
        maximize: false,
        step: 0,
    };
    for step in [
        base,
        AdamStep { weight_decay: 0.1, ..base },
        AdamStep { weight_decay: 0.1, decoupled: true, ..base },
        AdamStep { weight_decay: 0.1, maximize: true, ..base },
        AdamStep { maximize: true, beta1: 0.3, ..base },
        AdamStep { amsgrad: true, weight_decay: 0.1, ..base },
    ] {
        let inputs = [numbers(&[3, 4], 1), numbers(&[5], 2), numbers(&[4, 3], 3), numbers(&[5], 4)];
        check(&format!("{step:?}"), &inputs, &|x| {
            let params = [x[0].copy()?, x[1].copy()?];
            let grads = [x[2].t()?, x[3].clone()];
            let mut tensors = Vec::new();
            for (param, grad) in params.iter().zip(&grads) {
                tensors.extend([param.clone(), grad.clone()]);
                let states = if step.amsgrad { 3 } else { 2 };
                (0..states).try_for_each(|_| param.zeros_like().map(|zeros| tensors.push(zeros)))?;
            }
            for count in 1..=5 {
                // The second parameter is a step behind, as one that had no gradient once.
                let rules = [count + 1, count].map(|step_count| AdamStep { step: step_count, ..step });
                FusedAdam.call(Batch { tensors: &tensors, rules: &rules, steps: &[] })?;
            }
            Ok(tensors)
        });
    }
}

#[test]
fn what_the_library_refuses_is_told_in_its_words() {
    let x = numbers(&[2, 2], 1).to(npu()).unwrap().to_dtype(DType::I32).unwrap();
    let error = x.mm(&x).unwrap_err().to_string();
    assert!(
        error
            .contains("aclnnMmGetWorkspaceSize failed with code 161002 (ACLNN_ERR_PARAM_INVALID): aclnnMm: "),
        "{error}"
    );
}
