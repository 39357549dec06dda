//! Sizes and operands beyond reason: an answer or an error, soon, and never a panic.

use cresset_tensor::op::InPlace as _;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Op as _, Operand, Result, Scalar, Tensor};

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::F32).unwrap()
}

fn none() -> Tensor {
    Tensor::zeros([0], DType::I64).unwrap()
}

const NUMBER: Operand<'static> = Operand::Scalar(Scalar::Int(1));

type Call = (&'static str, fn() -> Result<()>);

/// Calls that are refused, or have an answer of no elements.
const CALLS: &[Call] = &[
    ("indices of a long triangle", || Tensor::tril_indices(1 << 62, 5, 0, DType::I64).map(drop)),
    ("indices of a high triangle", || Tensor::triu_indices(1 << 62, usize::MAX, -9, DType::I64).map(drop)),
    ("a stack beyond counting", || zeros(&[1 << 40, 1, 0, 3]).matmul(&zeros(&[1, 1 << 40, 3, 0])).map(drop)),
    ("an empty selection", || zeros(&[1 << 60, 0]).index_select(1, &none()).map(drop)),
    ("differences of nothing", || zeros(&[0, 1 << 60]).diff(usize::MAX, 1, None, None).map(drop)),
    ("decompositions of nothing", || zeros(&[1 << 60, 0, 3]).svd().map(drop)),
    ("ranges beyond memory", || zeros(&[2]).histc(1 << 60, 0.0, 1.0).map(drop)),
    ("a gradient beyond counting", || {
        let grad = EmbeddingDenseBackward { rows: 1, padding: None, scale_by_frequency: false };
        grad.call([&zeros(&[0, 1 << 62]), &Tensor::zeros([8], DType::I64)?]).map(drop)
    }),
    ("rows without width", || {
        let grad = EmbeddingDenseBackward { rows: 1 << 61, padding: None, scale_by_frequency: true };
        grad.call([&zeros(&[1, 0]), &Tensor::zeros([1], DType::I64)?]).map(drop)
    }),
    ("a sum over a dimension that is not there", || {
        Sum { dims: [0usize].into_iter().collect(), keep: false, dtype: None }.call([&zeros(&[])]).map(drop)
    }),
    ("a softmax along nothing", || SafeSoftmax { dim: usize::MAX.into() }.call([&zeros(&[2])]).map(drop)),
    ("an index into itself", || {
        let table = zeros(&[3, 2]);
        table.embedding_renorm_(&table.narrow(0, 0, 0)?, 1.0, 2.0)
    }),
];

#[test]
fn sizes_beyond_reason_get_an_answer_or_an_error() {
    for (name, call) in CALLS {
        let answer = std::panic::catch_unwind(call);
        assert!(answer.is_ok(), "{name}");
    }
}

#[test]
fn numbers_in_the_place_of_tensors_are_refused() {
    let x = zeros(&[2]);
    let before = x.version();
    let tensor = Operand::from(&x);
    let calls = [
        Clamp.call((&x, [None, None])).map(drop),
        Clamp.call_in_place((&x, [None, None])),
        MaskedFill.call([NUMBER, NUMBER, tensor]).map(drop),
        IndexFill { dim: 0.into() }.call([tensor, NUMBER, NUMBER]).map(drop),
        Scatter { dim: 0.into(), how: Combine::Replace }.call_in_place([NUMBER, tensor, tensor]),
    ];
    for (i, call) in calls.into_iter().enumerate() {
        assert!(call.is_err(), "call {i}");
    }
    assert_eq!(x.version(), before);
}

#[test]
fn triangles_are_counted_as_they_are_listed() {
    for (rows, columns) in [(0, 3), (3, 0), (3, 5), (5, 3), (4, 4)] {
        for offset in -6..7 {
            let lower = Tensor::tril_indices(rows, columns, offset, DType::I64).unwrap();
            let upper = Tensor::triu_indices(rows, columns, offset + 1, DType::I64).unwrap();
            assert_eq!(lower.shape()[1] + upper.shape()[1], rows * columns);
            let ones = Tensor::ones([rows, columns], DType::I64).unwrap();
            let below = ones.tril(offset).unwrap().nonzero().unwrap().t().unwrap();
            assert_eq!(lower.to_vec::<i64>().unwrap(), below.to_vec::<i64>().unwrap());
        }
    }
}

#[test]
fn equal_singular_values_have_gradients_of_their_own() {
    let x = Tensor::eye(2, 2, DType::F64).unwrap().with_grad().unwrap();
    let [_, values, _] = x.svd().unwrap();
    values.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn a_share_is_not_rounded_to_half_precision() {
    let ends = [0.0f32, 100.0].map(|x| Tensor::new([x]).unwrap().to_dtype(DType::BF16).unwrap());
    assert_eq!(
        ends[0].lerp(&ends[1], 0.3).unwrap().to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap(),
        [30.0]
    );
}

#[test]
fn images_can_shrink_and_grow_at_once() {
    let x = zeros(&[1, 1, 65536, 1]);
    let y = x.interpolate(&Resize::To(vec![1, 1 << 20]), Interpolation::Nearest, None).unwrap();
    assert_eq!(y.shape(), [1, 1, 1, 1 << 20]);
}
