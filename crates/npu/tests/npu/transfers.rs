//! Copies: who waits for whom, and what pinned memory is good for.

use crate::support::{alone, npu, numbers};
use cresset_npu::{Stream, host_fallbacks, set_host_fallback, synchronize};
use cresset_tensor::ops::{MultilabelMarginLoss, Reduction};
use cresset_tensor::{Cause, DType, Device, Op, Tensor, To};

fn later(device: Device) -> To {
    To { device: Some(device), non_blocking: true, ..To::default() }
}

#[test]
fn a_copy_to_the_device_does_not_wait_for_its_work() {
    let name = "transfers::a_copy_to_the_device_does_not_wait_for_its_work";
    alone(name, &[("CRESSET_SIM_DELAY_US", "2000")], || {
        let npu = npu();
        let (x, stream) = (Tensor::ones([8], npu).unwrap(), Stream::current(npu).unwrap());
        let y = x.add(1).unwrap();
        let host = numbers(&[1000], 1);
        let there = host.to(npu).unwrap();
        assert!(!stream.query().unwrap(), "the sum before it is still under way");
        // The bytes were laid aside: what becomes of them on the host is of no account.
        let expected = host.to_vec::<f32>().unwrap();
        host.zero_().unwrap();
        assert_eq!(there.to_vec::<f32>().unwrap(), expected);
        assert_eq!(y.to_vec::<f32>().unwrap(), [2.0; 8]);
    });
}

#[test]
fn pinned_memory_is_not_changed_before_a_copy_has_read_it() {
    let name = "transfers::pinned_memory_is_not_changed_before_a_copy_has_read_it";
    alone(name, &[("CRESSET_SIM_DELAY_US", "2000")], || {
        let npu = npu();
        let host = numbers(&[64], 1).pin_memory().unwrap();
        assert!(host.is_pinned() && host.pin_memory().unwrap().storage().same_as(host.storage()));
        let expected = host.to_vec::<f32>().unwrap();
        let there = host.to(later(npu)).unwrap();
        assert!(!Stream::current(npu).unwrap().query().unwrap());
        host.fill_(7).unwrap();
        assert_eq!(there.to_vec::<f32>().unwrap(), expected, "the change waited for the copy");
        assert_eq!(host.to_vec::<f32>().unwrap(), [7.0; 64]);
    });
}

#[test]
fn elements_that_are_still_under_way_are_waited_for() {
    let name = "transfers::elements_that_are_still_under_way_are_waited_for";
    alone(name, &[("CRESSET_SIM_DELAY_US", "2000")], || {
        let npu = npu();
        let x = numbers(&[64], 1);
        let there = x.to(npu).unwrap().add(1).unwrap();
        let back = there.to(later(Device::CPU)).unwrap();
        assert!(back.is_pinned() && !Stream::current(npu).unwrap().query().unwrap(), "nobody waited yet");
        assert_eq!(back.to_vec::<f32>().unwrap(), x.add(1).unwrap().to_vec::<f32>().unwrap());
        let target = Tensor::zeros([64], ()).unwrap().pin_memory().unwrap();
        target.copy_non_blocking_(&there.mul(2).unwrap()).unwrap();
        assert_eq!(
            target.sub(&back.mul(2).unwrap()).unwrap().abs().unwrap().max().unwrap().item().unwrap().as_f64(),
            0.0
        );
        // Given up with a copy under way, the block waits for it before somebody else has it.
        drop(there.to(later(Device::CPU)).unwrap());
        let other = Tensor::zeros([64], ()).unwrap().pin_memory().unwrap();
        synchronize(npu).unwrap();
        assert_eq!(other.to_vec::<f32>().unwrap(), [0.0; 64]);
    });
}

#[test]
fn every_type_and_size_crosses_and_comes_back() {
    let npu = npu();
    for dtype in [DType::Bool, DType::U8, DType::I64, DType::F16, DType::F64] {
        let x = numbers(&[33, 7], 2).mul(9).unwrap().to(dtype).unwrap();
        for to in [later(npu), npu.into()] {
            let there = x.to(to).unwrap();
            for back in [later(Device::CPU), Device::CPU.into()] {
                let back = there.t().unwrap().to(back).unwrap();
                assert_eq!(back.dtype(), dtype);
                let same = back.eq(&x.t().unwrap()).unwrap().all().unwrap().item().unwrap();
                assert_eq!(same.as_f64(), 1.0, "{dtype}");
            }
        }
    }
    let large = numbers(&[3 << 20], 3);
    let there = large.to(npu).unwrap();
    assert_eq!(there.to_vec::<f32>().unwrap(), large.to_vec::<f32>().unwrap());
    assert_eq!(Tensor::zeros([0, 3], npu).unwrap().to(later(Device::CPU)).unwrap().shape(), [0, 3]);
}

#[test]
fn pinning_something_else_is_refused() {
    let error = Tensor::zeros([2], npu()).unwrap().pin_memory().unwrap_err().to_string();
    assert_eq!(error, "aten::pin_memory: only tensors on the host can be pinned, and this one is on npu:0");
}

#[test]
fn a_copy_between_devices_comes_after_the_work_on_both() {
    let name = "transfers::a_copy_between_devices_comes_after_the_work_on_both";
    alone(name, &[("CRESSET_SIM_DEVICES", "2"), ("CRESSET_SIM_DELAY_US", "300")], || {
        npu();
        let [first, second] = [0, 1].map(cresset_npu::device);
        let mut x = Tensor::ones([100], first).unwrap();
        let mut there = Tensor::zeros([100], second).unwrap();
        for _ in 0..5 {
            x = x.add(&x).unwrap();
            there = there.add(1).unwrap();
        }
        there.copy_non_blocking_(&x).unwrap();
        x.zero_().unwrap();
        assert_eq!(there.to_vec::<f32>().unwrap(), [32.0; 100]);
        assert_eq!(there.to(first).unwrap().add(&x).unwrap().to_vec::<f32>().unwrap(), [32.0; 100]);
    });
}

#[test]
fn an_operator_without_a_kernel_is_an_error_unless_the_host_may_compute_it() {
    alone("transfers::an_operator_without_a_kernel_is_an_error_unless_the_host_may_compute_it", &[], || {
        let npu = npu();
        let (x, target) = (numbers(&[2, 3], 1), Tensor::new([[1i64, -1, 0], [0, 2, -1]]).unwrap());
        let (there, aim) = (x.to(npu).unwrap(), target.to(npu).unwrap());
        let op = || MultilabelMarginLoss { reduction: Reduction::None };
        let error = op().call([&there, &aim]).unwrap_err();
        assert_eq!(error.cause(), Cause::NoKernel);
        assert!(
            error.to_string().starts_with("aten::multilabel_margin_loss_forward: no kernel for npu"),
            "{error}"
        );
        set_host_fallback(true);
        let [loss, _] = op().call([&there, &aim]).unwrap();
        assert_eq!(loss.device(), npu);
        let [expected, _] = op().call([&x, &target]).unwrap();
        assert_eq!(loss.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
        assert_eq!(host_fallbacks(), [("aten::multilabel_margin_loss_forward", 1)]);
        set_host_fallback(false);
        assert!(op().call([&there, &aim]).is_err());
    });
}
