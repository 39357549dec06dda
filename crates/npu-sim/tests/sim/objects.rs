//! Descriptors, executors and workspaces.

use crate::support::*;
use cresset_acl::constant::{dtype, format};
use cresset_acl::types::TensorHandle;
use cresset_acl::{code, constant};
use std::ptr::{null, null_mut};

fn create(shape: &[i64], strides: Option<&[i64]>, offset: i64, storage: &[i64]) -> *mut TensorHandle {
    let strides = strides.map_or(null(), <[i64]>::as_ptr);
    let (rank, room) = (shape.len() as u64, storage.len() as u64);
    // SAFETY: all arrays are as long as their counts say.
    unsafe {
        aclCreateTensor(
            shape.as_ptr(),
            rank,
            0,
            strides,
            offset,
            format::ND,
            storage.as_ptr(),
            room,
            null_mut(),
        )
    }
}

#[test]
fn a_descriptor_is_destroyed_once() {
    open();
    let tensor = create(&[2, 2], None, 0, &[4]);
    // SAFETY: handles are checked.
    unsafe {
        ok(aclDestroyTensor(tensor));
        let (code, text) = failure(aclDestroyTensor(tensor));
        assert_eq!(code, code::NN_PARAM_INVALID);
        assert!(text.ends_with("was destroyed before, or is something else"), "{text}");
        ok(aclDestroyTensor(null()));
        let number = scalar(1.0);
        assert_eq!(failure(aclDestroyTensor(number.cast())).0, code::NN_PARAM_INVALID);
        ok(aclDestroyScalar(number));
        assert_eq!(failure(aclDestroyScalar(number)).0, code::NN_PARAM_INVALID);
    }
}

#[test]
fn a_list_destroys_its_tensors() {
    open();
    let tensors = [create(&[1], None, 0, &[1]).cast_const(), create(&[2], None, 0, &[2])];
    // SAFETY: two handles.
    unsafe {
        let list = aclCreateTensorList(tensors.as_ptr(), 2);
        ok(aclDestroyTensorList(list));
        assert_eq!(failure(aclDestroyTensor(tensors[1])).0, code::NN_PARAM_INVALID);
        assert_eq!(failure(aclDestroyTensorList(list)).0, code::NN_PARAM_INVALID);
    }
}

#[test]
fn a_view_lies_inside_its_storage() {
    open();
    assert!(!create(&[2, 3], Some(&[3, 1]), 2, &[8]).is_null());
    for (shape, strides, offset, storage) in [
        (&[2i64, 3][..], Some(&[3i64, 1][..]), 3, 8),
        (&[2, 3], None, 0, 5),
        (&[2, -3], None, 0, 8),
        (&[2, 3], Some(&[-3, 1]), 0, 8),
        (&[2, 3], None, -1, 8),
        (&[1; 9], None, 0, 1),
    ] {
        assert!(create(shape, strides, offset, &[storage]).is_null());
        assert!(recent().starts_with("aclCreateTensor: "));
    }
    assert!(!create(&[0, 3], None, 0, &[0]).is_null(), "an empty tensor needs no room");
}

#[test]
fn an_executor_runs_once() {
    open();
    let (x, out) = (Tensor::new(&[2], &[1.0, 4.0]), Tensor::new(&[2], &[0.0; 2]));
    let (mut size, mut executor) = (9, null_mut());
    // SAFETY: the places may be written.
    unsafe {
        ok(operators::sqrt::plan(x.raw, out.raw, &mut size, &mut executor));
        assert_eq!(size, 0);
        ok(operators::sqrt::run(null_mut(), 0, executor, null_mut()));
        let (code, text) = failure(operators::sqrt::run(null_mut(), 0, executor, null_mut()));
        assert_eq!(code, code::NN_PARAM_INVALID);
        assert_eq!(text, "aclnnSqrt: the executor was used or destroyed before");

        ok(operators::sqrt::plan(x.raw, out.raw, &mut size, &mut executor));
        let (code, text) = failure(operators::exp::run(null_mut(), 0, executor, null_mut()));
        assert_eq!(
            (code, text.as_str()),
            (code::NN_PARAM_INVALID, "aclnnExp: the executor was made for aclnnSqrt")
        );

        ok(operators::sqrt::plan(x.raw, out.raw, &mut size, &mut executor));
        ok(aclDestroyAclOpExecutor(executor));
        assert_eq!(failure(aclDestroyAclOpExecutor(executor)).0, code::NN_PARAM_INVALID);
    }
    synchronize().unwrap();
    assert_eq!(out.get(), [1.0, 2.0]);
}

#[test]
fn a_workspace_is_given_large_enough_and_on_the_device() {
    open();
    let (x, out) = (Tensor::new(&[2, 2], &[1.0; 4]), Tensor::new(&[2, 2], &[0.0; 4]));
    let block = Block::new(512);
    let mut host = [0u8; 512];
    let plan = || {
        let (mut size, mut executor) = (0, null_mut());
        // SAFETY: the places may be written.
        ok(unsafe { operators::mm::plan(x.raw, x.raw, out.raw, 0, &mut size, &mut executor) });
        assert_eq!(size, 512);
        executor
    };
    // SAFETY: all addresses are checked.
    unsafe {
        let (code, text) = failure(operators::mm::run(null_mut(), 0, plan(), null_mut()));
        assert_eq!(
            (code, text.as_str()),
            (code::NN_PARAM_NULLPTR, "aclnnMm: the workspace of 512 bytes is missing")
        );
        assert_eq!(failure(operators::mm::run(block.0, 511, plan(), null_mut())).0, code::NN_PARAM_INVALID);
        let status = operators::mm::run(host.as_mut_ptr().cast(), 512, plan(), null_mut());
        assert_eq!(failure(status).0, code::NN_PARAM_INVALID);
        ok(operators::mm::run(block.0, 512, plan(), null_mut()));
    }
    synchronize().unwrap();
    assert_eq!(out.get(), [2.0; 4]);
}

#[test]
fn descriptors_may_go_once_the_work_is_given() {
    open();
    let (x, out) = (Tensor::new(&[3], &[1.0, 2.0, 3.0]), Tensor::new(&[3], &[0.0; 3]));
    let (mut size, mut executor) = (0, null_mut());
    // SAFETY: the places may be written.
    unsafe {
        ok(operators::neg::plan(x.raw, out.raw, &mut size, &mut executor));
        ok(operators::neg::run(null_mut(), 0, executor, null_mut()));
        ok(aclDestroyTensor(x.raw));
        let (code, text) = failure(operators::neg::plan(x.raw, out.raw, &mut size, &mut executor));
        assert_eq!(code, code::NN_PARAM_INVALID);
        assert_eq!(text, "aclnnNeg: x was destroyed before, or is something else");
    }
    synchronize().unwrap();
    assert_eq!(out.get(), [-1.0, -2.0, -3.0]);
}

#[test]
fn arguments_are_checked_before_anything_runs() {
    open();
    let (x, y, out) =
        (Tensor::new(&[2, 3], &[0.0; 6]), Tensor::new(&[4], &[0.0; 4]), Tensor::new(&[2, 3], &[0.0; 6]));
    let (mask, index) = (Tensor::<u8>::new(&[2, 3], &[0; 6]), Tensor::<i64>::new(&[2], &[0, 1]));
    let one = scalar(1.0);
    let invalid = code::NN_PARAM_INVALID;
    for (outcome, code, text) in [
        (run!(add(null(), y.raw, one, out.raw)), code::NN_PARAM_NULLPTR, "aclnnAdd: x is null"),
        (run!(add(x.raw, y.raw, one, out.raw)), invalid, "aclnnAdd: shapes [2, 3] and [4] do not broadcast"),
        (run!(neg(y.raw, out.raw)), invalid, "aclnnNeg: out has shape [2, 3], expected [4]"),
        (run!(exp(x.raw, mask.raw)), invalid, "aclnnExp: a result of f32 cannot be stored as bool"),
        (run!(mm(x.raw, x.raw, out.raw, 0)), invalid, "aclnnMm: [2, 3] and [2, 3] cannot be multiplied"),
        (
            run!(reduce_sum(x.raw, ints(&[0, -2]), false, dtype::FLOAT, out.raw)),
            invalid,
            "aclnnReduceSum: dimensions [0, -2] name one twice",
        ),
        (run!(log_softmax(x.raw, 2, out.raw)), invalid, "aclnnLogSoftmax: dimension 2 is out of range -2..2"),
        (
            run!(nll_loss(x.raw, index.raw, null(), constant::reduction::MEAN, -100, out.raw, out.raw)),
            code::NN_PARAM_NULLPTR,
            "aclnnNLLLoss: weight is null",
        ),
        (
            run!(index_select(x.raw, 0, x.raw, out.raw)),
            invalid,
            "aclnnIndexSelect: index has shape [2, 3], expected 1 dimensions",
        ),
    ] {
        assert_eq!(outcome, Err((code, text.to_owned())));
    }
}

#[test]
fn a_kernel_on_host_memory_fails_in_the_stream() {
    open();
    let mut host = [1.0f32; 4];
    let out = Tensor::new(&[4], &[0.0; 4]);
    // SAFETY: the address is wrong on purpose, and only looked at.
    let x = unsafe {
        aclCreateTensor(&4, 1, dtype::FLOAT, null(), 0, format::ND, &4, 1, host.as_mut_ptr().cast())
    };
    let (code, text) = run!(relu(x, out.raw)).unwrap_err();
    assert_eq!(code, code::RT_AICORE_EXCEPTION);
    assert!(text.contains("aclnnRelu: access to 16 bytes at"), "{text}");
    synchronize().unwrap();
}
