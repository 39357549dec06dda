//! Values, shapes, dtypes and errors of single operators.

use cresset_tensor::ops::{Attention, BatchNorm};
use cresset_tensor::{Cause, DType, Device, Result, Tensor};

fn f32s(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec::<f32>().unwrap()
}

#[test]
fn a_short_way_gives_the_bits_of_the_long_way() {
    for count in (1..40).chain([1000, 1024, 1025]) {
        let elements: Vec<f32> = (1..=count).map(|i| (i as f32 * 0.7).sin() / i as f32).collect();
        let x = Tensor::from_slice(&elements, [count]).unwrap();
        // Views with gaps, and sums over dimensions that are named, go the long way.
        let apart = Tensor::stack(&[&x, &x], 1).unwrap().select(1, 0).unwrap();
        assert_eq!(f32s(&x.sum().unwrap()), f32s(&x.sum_dims(&[0], false).unwrap()), "{count}");
        let pairs: [fn(&Tensor, &Tensor) -> Result<Tensor>; 3] =
            [|a, b| a.add(b), |a, b| a.mul(b), |a, b| a.div(b)];
        for f in pairs {
            assert_eq!(f32s(&f(&x, &x).unwrap()), f32s(&f(&apart, &apart).unwrap()), "{count}");
        }
    }
}

#[test]
fn arithmetic_broadcasts_and_promotes() {
    let rows = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).unwrap();
    let row = Tensor::new([10.0f32, 20.0]).unwrap();
    assert_eq!(f32s(&(&rows + &row).unwrap()), [11.0, 22.0, 13.0, 24.0]);
    assert_eq!(f32s(&(&rows - &row).unwrap()), [-9.0, -18.0, -7.0, -16.0]);
    assert_eq!(f32s(&(1.0 - &row).unwrap()), [-9.0, -19.0]);
    assert_eq!(f32s(&(1.0 / &row).unwrap()), [0.1, 0.05]);
    assert_eq!(f32s(&rows.pow(2).unwrap()), [1.0, 4.0, 9.0, 16.0]);
    let counts = Tensor::new([1i64, 2]).unwrap();
    assert_eq!((&counts * 2.5).unwrap().dtype(), DType::F32);
    assert_eq!((&counts * 2).unwrap().to_vec::<i64>().unwrap(), [2, 4]);
    assert_eq!((&counts / &counts).unwrap().dtype(), DType::F32);
    let doubles = Tensor::new([1.0f64, 2.0]).unwrap();
    assert_eq!((&counts + &doubles).unwrap().to_vec::<f64>().unwrap(), [2.0, 4.0]);
}

#[test]
fn an_expression_needs_one_question_mark() {
    let (x, w, b) =
        (Tensor::new([2.0f32]).unwrap(), Tensor::new([3.0f32]).unwrap(), Tensor::new([1.0f32]).unwrap());
    assert_eq!(f32s(&(&x * &w + &b).unwrap()), [7.0]);
    let bad = Tensor::new([1.0f32, 2.0]).unwrap();
    let worse = Tensor::new([1.0f32, 2.0, 3.0]).unwrap();
    let error = (&bad * &worse + &b).unwrap_err();
    assert_eq!(error.to_string(), "aten::mul: shapes [2] and [3] do not broadcast");
    assert_eq!((error.cause(), error.op()), (Cause::Shape, "aten::mul"));
}

#[test]
fn operators_take_references_and_values_and_numbers_on_either_side() {
    let (x, y) = (Tensor::new([5i64, -5]).unwrap(), Tensor::new([3i64, 3]).unwrap());
    let i64s = |result: cresset_tensor::Result<Tensor>| result.unwrap().to_vec::<i64>().unwrap();
    assert_eq!(i64s(&x % &y), [2, 1]);
    assert_eq!(i64s(7 % &y), [1, 1]);
    assert_eq!(i64s(x.clone() + y.clone() - &x), [3, 3]);
    assert_eq!(i64s(-(&x * 2).unwrap()), [-10, 10]);
    assert_eq!(i64s(&x & 3), [1, 3]);
    assert_eq!(i64s(1 | &y), [3, 3]);
    assert_eq!(i64s(&x ^ &x), [0, 0]);
    assert_eq!(i64s(!&y), [-4, -4]);
    let truths = (&x.gt(0).unwrap() | y.lt(0)).unwrap();
    assert_eq!((!truths).unwrap().to_vec::<bool>().unwrap(), [false, true]);
}

#[test]
fn integers_are_not_divided_by_zero() {
    let (x, zeros) = (Tensor::new([5i64, -5]).unwrap(), Tensor::new([1i64, 0]).unwrap());
    for result in [x.floor_divide(&zeros), x.remainder(0), x.fmod(&zeros)] {
        assert!(result.unwrap_err().to_string().contains("divided by zero"));
    }
    assert!(x.remainder_(&zeros).is_err());
    assert_eq!(x.to_vec::<i64>().unwrap(), [5, -5]);
    assert!(x.remainder(0.0).unwrap().isnan().unwrap().to_vec::<bool>().unwrap()[0]);
}

#[test]
fn truths_add_and_multiply_but_do_not_subtract() {
    let (a, b) = (Tensor::new([true, true, false]).unwrap(), Tensor::new([true, false, false]).unwrap());
    assert_eq!((&a + &b).unwrap().to_vec::<bool>().unwrap(), [true, true, false]);
    assert_eq!((&a * &b).unwrap().to_vec::<bool>().unwrap(), [true, false, false]);
    assert!((&a - &b).unwrap_err().to_string().contains("logical_xor"));
    assert!(Tensor::new([1i64]).unwrap().add_scaled(1, 0.5).is_err());
}

#[test]
fn powers_of_integers_are_integers() {
    let x = Tensor::new([2i32, -3]).unwrap();
    assert_eq!(x.pow(3).unwrap().to_vec::<i32>().unwrap(), [8, -27]);
    assert_eq!(x.pow(&Tensor::new([-1i32, 2]).unwrap()).unwrap().to_vec::<i32>().unwrap(), [0, 9]);
    assert!(x.pow(-1).is_err());
    assert_eq!(x.pow(-1.0).unwrap().dtype(), DType::F32);
}

#[test]
fn numbers_beside_half_precision_are_not_rounded_first() {
    use cresset_tensor::f16;
    let x = Tensor::new([f16::from_f32(-0.1)]).unwrap();
    let sum = x.add(0.1).unwrap().to_vec::<f16>().unwrap()[0].to_f32();
    assert!((sum - (0.1 - f16::from_f32(0.1).to_f32())).abs() < 1e-7 && sum != 0.0);
}

#[test]
fn functions_of_one_operand() {
    let x = Tensor::new([-1.0f64, 0.0, 2.0]).unwrap();
    let f64s = |tensor: Tensor| tensor.to_vec::<f64>().unwrap();
    assert_eq!(f64s(x.neg().unwrap()), [1.0, 0.0, -2.0]);
    assert_eq!(f64s(x.relu().unwrap()), [0.0, 0.0, 2.0]);
    assert_eq!(f64s(x.exp().unwrap())[1], 1.0);
    assert!((f64s(x.tanh().unwrap())[2] - 2.0f64.tanh()).abs() < 1e-15);
    assert!((f64s(x.sigmoid().unwrap())[0] - 1.0 / (1.0 + 1.0f64.exp())).abs() < 1e-15);
    assert!(f64s(x.log().unwrap())[0].is_nan());
    assert_eq!(f64s(x.pow(2.0).unwrap().sqrt().unwrap()), [1.0, 0.0, 2.0]);
    assert_eq!(Tensor::new([4i64]).unwrap().sqrt().unwrap().to_vec::<f32>().unwrap(), [2.0]);
    let error = Tensor::new([true]).unwrap().neg().unwrap_err();
    assert_eq!(error.to_string(), "aten::neg: not defined for bool; convert with to_dtype() first");
}

#[test]
fn reductions_over_all_and_some_dimensions() {
    let x = Tensor::new([[1.0f32, 5.0, 3.0], [4.0, 2.0, 6.0]]).unwrap();
    assert_eq!(f32s(&x.sum().unwrap()), [21.0]);
    assert_eq!(f32s(&x.sum_dims(&[0], false).unwrap()), [5.0, 7.0, 9.0]);
    assert_eq!(x.sum_dims(&[1], true).unwrap().shape(), [2, 1]);
    assert_eq!(f32s(&x.mean().unwrap()), [3.5]);
    assert_eq!(f32s(&x.mean_dims(&[-1], false).unwrap()), [3.0, 4.0]);
    assert_eq!(f32s(&x.max().unwrap()), [6.0]);
    let [values, indices] = x.max_dim(1, false).unwrap();
    assert_eq!((f32s(&values), indices.to_vec::<i64>().unwrap()), (vec![5.0, 6.0], vec![1, 2]));
    assert_eq!(x.argmax(0, false).unwrap().to_vec::<i64>().unwrap(), [1, 0, 1]);
    assert_eq!(Tensor::new([true, true]).unwrap().sum().unwrap().item().unwrap().as_i64(), 2);
    let error = x.sum_dims(&[2], false).unwrap_err();
    assert_eq!(error.to_string(), "aten::sum: dimension 2 is out of range: expected -2 to 1");
    let error = Tensor::new([1i64]).unwrap().mean().unwrap_err();
    assert_eq!(
        error.to_string(),
        "aten::mean: gives floats, not i64; convert with to_dtype() or ask for a float type"
    );
    let error = Tensor::zeros([0], ()).unwrap().max().unwrap_err();
    assert_eq!(error.to_string(), "aten::max: a tensor of shape [0] has no elements to choose from");
}

#[test]
fn matrix_products_of_every_rank() {
    let a = Tensor::new([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap();
    let b = Tensor::new([[1.0f32, 0.0, 2.0], [0.0, 1.0, 3.0]]).unwrap();
    assert_eq!(f32s(&a.mm(&b).unwrap()), [1.0, 2.0, 8.0, 3.0, 4.0, 18.0, 5.0, 6.0, 28.0]);
    assert_eq!(f32s(&b.t().unwrap().matmul(&a.t().unwrap()).unwrap().t().unwrap()), f32s(&a.mm(&b).unwrap()));
    let vector = Tensor::new([1.0f32, 10.0]).unwrap();
    assert_eq!(f32s(&a.matmul(&vector).unwrap()), [21.0, 43.0, 65.0]);
    assert_eq!(f32s(&vector.matmul(&b).unwrap()), [1.0, 10.0, 32.0]);
    assert_eq!(f32s(&vector.matmul(&vector).unwrap()), [101.0]);
    let stack = a.expand([4, 3, 2]).unwrap();
    assert_eq!(stack.matmul(&b).unwrap().shape(), [4, 3, 3]);
    let bias = Tensor::new([100.0f32, 200.0, 300.0]).unwrap();
    let linear = stack.linear(&b.t().unwrap(), Some(&bias)).unwrap();
    assert_eq!(linear.shape(), [4, 3, 3]);
    assert_eq!(f32s(&linear)[..3], [101.0, 202.0, 308.0]);
}

#[test]
fn products_that_do_not_fit_say_both_shapes() {
    let a = Tensor::zeros([64, 784], ()).unwrap();
    let b = Tensor::zeros([512, 256], ()).unwrap();
    assert_eq!(
        a.matmul(&b).unwrap_err().to_string(),
        "aten::matmul: inner dimensions differ: [64, 784] x [512, 256]"
    );
    assert_eq!(
        a.mm(&b).unwrap_err().to_string(),
        "aten::mm: inner dimensions differ: [64, 784] x [512, 256]"
    );
    let doubles = Tensor::zeros([784, 2], DType::F64).unwrap();
    let error = a.mm(&doubles).unwrap_err();
    assert_eq!(error.to_string(), "aten::mm: expects two tensors of one number type, not f32 and f64");
    assert_eq!(error.cause(), Cause::DType);
    let text = "an input of shape [64, 784] takes a weight of shape [outputs, 784] or [784], not [512, 256]";
    assert_eq!(a.linear(&b, None).unwrap_err().to_string(), format!("aten::linear: {text}"));
}

#[test]
fn views_share_memory_and_reshape_copies_only_where_it_must() {
    let x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
    let flat = x.view([6]).unwrap();
    flat.mul_(10.0).unwrap();
    assert_eq!(f32s(&x)[5], 60.0);
    assert_eq!(f32s(&x.t().unwrap()), [10.0, 40.0, 20.0, 50.0, 30.0, 60.0]);
    let error = x.t().unwrap().view([6]).unwrap_err();
    assert!(error.to_string().ends_with("use reshape(), which copies where it must"), "{error}");
    let copied = x.t().unwrap().reshape([6]).unwrap();
    copied.zero_().unwrap();
    assert_eq!(f32s(&x)[0], 10.0);
    let error = x.view([4]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "aten::view: shape [2, 3] cannot become [4]: the number of elements differs"
    );
    assert_eq!(x.version(), 1);
}

#[test]
fn classification_losses_match_hand_computed_values() {
    let scores = Tensor::new([[1.0f64, 2.0, 3.0], [1.0, 1.0, 1.0]]).unwrap();
    let target = Tensor::new([2i64, 0]).unwrap();
    let loss = scores.cross_entropy(&target).unwrap().item().unwrap().as_f64();
    let first = -(3.0 - (1f64.exp() + 2f64.exp() + 3f64.exp()).ln());
    assert!((loss - (first + 3f64.ln()) / 2.0).abs() < 1e-12);
    let error = scores.cross_entropy(&Tensor::new([3i64, 0]).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "aten::nll_loss_forward: target index 3 is out of range for size 3");
    let error = scores.cross_entropy(&Tensor::new([1i64]).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "aten::cross_entropy_loss: expects scores of [classes] or [samples, classes, ..] and targets of the same shape without classes, not [2, 3] and [1]"
    );
}

#[test]
fn rows_are_picked_and_added_by_index() {
    let table = Tensor::new([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap();
    let picked = table.embedding(&Tensor::new([[2i64, 0]]).unwrap(), None).unwrap();
    assert_eq!(picked.shape(), [1, 2, 2]);
    assert_eq!(f32s(&picked), [5.0, 6.0, 1.0, 2.0]);
    let columns = table.index_select(1, &Tensor::new([1i64, 1]).unwrap()).unwrap();
    assert_eq!(f32s(&columns), [2.0, 2.0, 4.0, 4.0, 6.0, 6.0]);
    let error = table.index_select(0, &Tensor::new([7i64]).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "aten::index_select: index 7 is out of range for size 3");
    assert_eq!(error.cause(), Cause::Index);
}

#[test]
fn in_place_operators_change_their_target_and_only_it() {
    let x = Tensor::new([1.0f32, 2.0]).unwrap();
    x.add_(&x).unwrap();
    assert_eq!(f32s(&x), [2.0, 4.0]);
    x.add_scaled_(&Tensor::new([1.0f32, 1.0]).unwrap(), -0.5).unwrap();
    assert_eq!(f32s(&x), [1.5, 3.5]);
    x.addcdiv_(&Tensor::new([1.0f32, 2.0]).unwrap(), &Tensor::new([2.0f32, 4.0]).unwrap(), 3.0).unwrap();
    assert_eq!(f32s(&x), [3.0, 5.0]);
    x.lerp_(&Tensor::new([5.0f32, 5.0]).unwrap(), 0.5).unwrap();
    assert_eq!(f32s(&x), [4.0, 5.0]);
    let error = x.add_(&Tensor::zeros([3, 2], ()).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "aten::add_: the result has shape [3, 2], which does not fit into [2]");
    let counts = Tensor::new([1i64]).unwrap();
    let error = counts.mul_(1.5).unwrap_err();
    assert_eq!(error.to_string(), "aten::mul_: the result has dtype f32, which cannot be kept as i64");
    let wide = Tensor::new([1.0f32]).unwrap().expand([3]).unwrap();
    assert_eq!(wide.add_(1.0).unwrap_err().cause(), Cause::Argument);
}

#[test]
fn sizes_and_literals_that_make_no_tensor_are_errors() {
    assert_eq!(Tensor::new(vec![vec![1.0f32], vec![1.0, 2.0]]).unwrap_err().cause(), Cause::Shape);
    let error = Tensor::from_slice(&[1.0f32; 5], [2, 3]).unwrap_err();
    assert_eq!(error.to_string(), "from_slice: 5 elements do not make up shape [2, 3]");
    let error = Tensor::zeros([1 << 40, 1 << 40], ()).unwrap_err();
    assert_eq!(error.cause(), Cause::Memory);
    assert_eq!(Tensor::zeros([1 << 46], ()).unwrap_err().cause(), Cause::Memory);
}

#[test]
fn operators_called_with_attributes_that_make_no_sense_are_errors() {
    use cresset_tensor::ops::*;
    use cresset_tensor::{Op, Result};
    let x = Tensor::zeros([2, 3], ()).unwrap();
    let index = Tensor::new([0i64, 1]).unwrap();
    let dims = || [9].into_iter().collect();
    let calls: [(&str, Result<()>); 9] = [
        ("transpose", Transpose { a: 9.into(), b: 0.into() }.call([&x]).map(drop)),
        ("sum", Sum { dims: dims(), keep: false, dtype: None }.call([&x]).map(drop)),
        ("mean", Mean { dims: [0, 0].into_iter().collect(), keep: false, dtype: None }.call([&x]).map(drop)),
        ("max", MaxDim { dim: 9.into(), keep: false }.call([&x]).map(drop)),
        ("argmax", Argmax { dim: Some(9.into()), keep: false }.call([&x]).map(drop)),
        ("log_softmax", LogSoftmax { dim: 9 }.call([&x]).map(drop)),
        ("index_select", IndexSelect { dim: 9.into() }.call([&x, &index]).map(drop)),
        ("index_add", IndexAdd { dim: 9.into(), alpha: 1.into() }.call([&x, &x, &index]).map(drop)),
        ("view", x.view([1i64 << 40, 1 << 40]).map(drop)),
    ];
    for (name, result) in calls {
        assert!(result.is_err(), "{name}");
    }
    assert!(x.expand([1usize << 63]).is_err());
    assert_eq!(Tensor::arange(1i64 << 45).unwrap_err().cause(), Cause::Memory);
    let wide = Tensor::new([1.0f32]).unwrap().expand([1i64 << 50]).unwrap();
    assert_eq!(wide.to_vec::<f32>().unwrap_err().cause(), Cause::Memory);
}

#[test]
fn an_adam_step_over_shared_memory_is_refused_or_right() {
    use cresset_tensor::Op;
    use cresset_tensor::ops::{AdamStep, Batch, FusedAdam};
    let step = AdamStep {
        lr: 0.1,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.0,
        decoupled: false,
        amsgrad: false,
        maximize: false,
        step: 1,
    };
    let adam = |tensors: [&Tensor; 4]| {
        let tensors = tensors.map(Clone::clone);
        FusedAdam.call(Batch { tensors: &tensors, rules: &[step], steps: &[] })
    };
    let (p, m, v) =
        (Tensor::ones([2], ()).unwrap(), Tensor::zeros([2], ()).unwrap(), Tensor::zeros([2], ()).unwrap());
    assert_eq!(adam([&p, &p, &m, &m]).unwrap_err().cause(), Cause::Argument);
    adam([&p, &p, &m, &v]).unwrap();
    assert_eq!(f32s(&m), [0.1, 0.1]);
}

#[test]
fn zero_size_and_zero_dim_tensors_work_everywhere() {
    let empty = Tensor::zeros([0, 3], ()).unwrap();
    assert_eq!((&empty + &empty).unwrap().shape(), [0, 3]);
    assert_eq!(empty.sum().unwrap().item().unwrap().as_f64(), 0.0);
    assert_eq!(empty.t().unwrap().mm(&empty).unwrap().to_vec::<f32>().unwrap(), [0.0; 9]);
    let point = Tensor::new(3.0f32).unwrap();
    assert!(point.shape().is_empty());
    assert_eq!(point.max_dim(0, false).unwrap()[0].item().unwrap().as_f64(), 3.0);
    assert_eq!(point.log_softmax(-1).unwrap().item().unwrap().as_f64(), 0.0);
}

#[test]
fn meta_tensors_have_shapes_but_no_elements() {
    let a = Tensor::empty([64, 784], Device::META).unwrap();
    let b = Tensor::empty([784, 10], Device::META).unwrap();
    let c = a.mm(&b).unwrap().log_softmax(1).unwrap();
    assert_eq!((c.shape(), c.device()), (&[64usize, 10][..], Device::META));
    assert!(b.mm(&a).is_err());
    assert_eq!(c.sum().unwrap().item().unwrap_err().to_string(), "aten::item: a meta tensor has no elements");
    let host = Tensor::zeros([784, 10], ()).unwrap();
    let error = a.mm(&host).unwrap_err();
    assert_eq!(
        error.to_string(),
        "aten::mm: tensors are on meta and cpu, of shapes [64, 784] and [784, 10]; move them to one device with to()"
    );
}

#[test]
fn more_bytes_than_can_be_addressed_are_refused_where_nothing_is_allocated() {
    let meta = (DType::F64, Device::META);
    let zeros = |shape: &[usize]| Tensor::zeros(shape, meta);
    let (row, column) = (zeros(&[1, 1 << 30]).unwrap(), zeros(&[1 << 30, 1]).unwrap());
    let refused = [
        zeros(&[1 << 60]),
        row.repeat([1 << 30, 1]),
        row.expand([1 << 30, 1 << 30]).unwrap().contiguous(),
        row.repeat_interleave(1 << 30, Some(0)),
        column.mm(&row),
        column.add(&row),
    ];
    for outcome in refused {
        let error = outcome.unwrap_err();
        assert_eq!(error.cause(), Cause::Memory, "{error}");
        assert!(error.to_string().contains("more bytes than can be addressed"), "{error}");
    }
    assert_eq!(zeros(&[(1 << 60) - 1]).unwrap().numel(), (1 << 60) - 1);
}

#[test]
fn ndarray_looks_in_without_copying_and_out_by_copy() {
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).unwrap();
    let sum = x.t().unwrap().with_ndarray(|view: ndarray::ArrayViewD<'_, f32>| view[[0, 1]]).unwrap();
    assert_eq!(sum, 3.0);
    let array = x.to_ndarray::<f32>().unwrap();
    let back = Tensor::try_from(array.view().reversed_axes()).unwrap();
    assert_eq!(f32s(&back), [1.0, 3.0, 2.0, 4.0]);
    let error = x.to_vec::<f64>().unwrap_err();
    assert_eq!(error.to_string(), "to_vec: elements are f32, not f64; convert with to_dtype() first");
}

#[test]
fn arrays_become_tensors_where_they_lie() {
    let array = ndarray::Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (i * 100 + j * 10 + k) as f64);
    let expected: Vec<f64> = array.t().iter().copied().collect();
    let address = array.as_ptr() as usize;
    let x = Tensor::try_from(array.reversed_axes()).unwrap();
    assert_eq!(x.storage().host().unwrap().address(), address);
    assert_eq!((x.shape(), x.strides()), (&[4, 3, 2][..], &[1, 4, 12][..]));
    assert_eq!(x.to_vec::<f64>().unwrap(), expected);

    let mut part = ndarray::array![[1i32, 2, 3], [4, 5, 6]];
    part.slice_collapse(ndarray::s![.., 1..]);
    assert_eq!(Tensor::try_from(part).unwrap().to_vec::<i32>().unwrap(), [2, 3, 5, 6]);
    let mut backwards = ndarray::array![1u8, 2, 3];
    backwards.invert_axis(ndarray::Axis(0));
    assert_eq!(Tensor::try_from(backwards).unwrap().to_vec::<u8>().unwrap(), [3, 2, 1]);
    let nothing = ndarray::Array2::<f32>::zeros((0, 3));
    assert_eq!(Tensor::try_from(nothing).unwrap().shape(), [0, 3]);
}

#[test]
fn a_vector_becomes_a_tensor_where_it_lies() {
    let elements = vec![1.0f32; 6];
    let address = elements.as_ptr() as usize;
    let x = Tensor::from_vec(elements, [2, 3]).unwrap();
    assert_eq!(x.storage().host().unwrap().address(), address);
    x.add_(1.0).unwrap();
    assert_eq!(f32s(&x), [2.0; 6]);
    let error = Tensor::from_vec(vec![1i64], [2]).unwrap_err();
    assert_eq!(error.to_string(), "from_vec: 1 elements do not make up shape [2]");
}

#[test]
fn half_precision_computes_and_converts() {
    for dtype in [DType::F16, DType::BF16] {
        let x = Tensor::new([1.5f32, -2.0]).unwrap().to_dtype(dtype).unwrap();
        let y = x.mul(&x).unwrap().relu().unwrap().to_dtype(DType::F32).unwrap();
        assert_eq!(f32s(&y), [2.25, 4.0]);
    }
}

#[test]
fn a_seed_gives_the_same_numbers_again() {
    // One test, because the seed belongs to the whole process.
    cresset_tensor::manual_seed(7);
    let (a, order) = (Tensor::randn([100], ()).unwrap(), Tensor::randperm(10).unwrap());
    cresset_tensor::manual_seed(7);
    assert_eq!(f32s(&a), f32s(&Tensor::randn([100], ()).unwrap()));
    assert_eq!(order.to_vec::<i64>().unwrap(), Tensor::randperm(10).unwrap().to_vec::<i64>().unwrap());
    let uniform = f32s(&Tensor::rand([1000], ()).unwrap());
    assert!(uniform.iter().all(|x| (0.0..1.0).contains(x)));
}

#[test]
fn attention_on_the_host_lies_as_its_queries_do_and_is_one_node() {
    let numbers: Vec<f32> = (0..2 * 3 * 24).map(|i| i as f32 / 100.0).collect();
    let x = Tensor::from_slice(&numbers, [2, 3, 24]).unwrap().with_grad().unwrap();
    let parts = x.split(8, -1).unwrap();
    let heads = |x: &Tensor| x.reshape([2, 3, 2, 4]).unwrap().transpose(1, 2).unwrap();
    let (query, key, value) = (heads(&parts[0]), heads(&parts[1]), heads(&parts[2]));
    let causal = Attention { causal: true, ..Attention::default() };
    let out = query.scaled_dot_product_attention(&key, &value, causal).unwrap();
    assert_eq!((out.shape(), out.strides()), (&[2, 2, 3, 4][..], &[24, 4, 8, 1][..]));
    assert_eq!(out.grad_fn(), Some("ScaledDotProductFlashAttentionForCpuBackward0"));
    // A mask with a gradient of its own is not for the kernel.
    let mask = Tensor::zeros([3, 3], DType::F32).unwrap().with_grad().unwrap();
    let masked = Attention { mask: Some(&mask), ..Attention::default() };
    let composed = query.scaled_dot_product_attention(&key, &value, masked).unwrap();
    assert_ne!(composed.grad_fn(), out.grad_fn());
}

#[test]
fn batch_norm_of_nothing_leaves_running_statistics_as_they_were() {
    for shape in [&[0, 2][..], &[0, 2, 3], &[2, 2, 0]] {
        let (mean, variance) = (Tensor::new([1.0f32, 2.0]).unwrap(), Tensor::new([3.0f32, 4.0]).unwrap());
        let training = BatchNorm { training: true, ..BatchNorm::default() };
        let x = Tensor::zeros(shape, ()).unwrap();
        let y = x.batch_norm([Some(&mean), Some(&variance)], None, None, training).unwrap();
        assert_eq!(y.shape(), shape);
        assert_eq!((f32s(&mean), f32s(&variance)), (vec![1.0, 2.0], vec![3.0, 4.0]));
    }
}

/// As torch's vector code and processors with fused products have it: paths of optimizers depend on it.
#[test]
fn sums_with_a_factor_are_rounded_once() {
    let of = |x: &[f64]| Tensor::new(x.to_vec()).unwrap();
    let (xs, ys, zs) = ([0.1, -7.3, 1e10 / 3.0], [0.7, 1.0 / 3.0, 3e9 / 7.0], [1.1, 0.9, -2.0 / 3.0]);
    let (x, y, z, alpha) = (of(&xs), of(&ys), of(&zs), 0.371_234_567_890_123_4f64);
    let f64s = |tensor: Tensor| tensor.to_vec::<f64>().unwrap();
    let each = |f: &dyn Fn(usize) -> f64| (0..3).map(f).collect::<Vec<f64>>();
    assert_eq!(f64s(x.add_scaled(&y, alpha).unwrap()), each(&|i| alpha.mul_add(ys[i], xs[i])));
    assert_eq!(f64s(x.sub_scaled(&y, alpha).unwrap()), each(&|i| (-alpha).mul_add(ys[i], xs[i])));
    assert_eq!(f64s(x.lerp(&y, alpha).unwrap()), each(&|i| alpha.mul_add(ys[i] - xs[i], xs[i])));
    assert_eq!(f64s(x.lerp(&y, 0.7).unwrap()), each(&|i| (0.7f64 - 1.0).mul_add(ys[i] - xs[i], ys[i])));
    assert_eq!(f64s(x.addcmul(&y, &z, alpha).unwrap()), each(&|i| (alpha * ys[i]).mul_add(zs[i], xs[i])));
    assert_eq!(f64s(x.add(&y).unwrap()), each(&|i| xs[i] + ys[i]));
}
