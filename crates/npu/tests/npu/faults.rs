//! What goes wrong on a device: an error that says what and where, and a process that goes on.

use crate::support::{alone, alone_each, npu, numbers};
use cresset_dispatch::memory::{Listener, Report, Slot};
use cresset_npu::{AclError, launch_blocking, memory_allocated, synchronize};
use cresset_tensor::{Cause, DType, Error, Result, Tensor};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts requests for memory that failed.
struct Failures(AtomicUsize);

impl Listener for Failures {
    fn memory(&self, report: &Report) {
        if report.bytes == 0 {
            self.0.fetch_add(1, Relaxed);
        }
    }
}

/// A step of training that asks for several pieces of memory; its loss.
fn step(weights: &[Tensor; 2]) -> Result<f64> {
    let device = weights[0].device();
    let x = numbers(&[600, 900], 3).to(device)?;
    let hidden = x.mm(&weights[0])?.tanh()?;
    let large = Tensor::zeros([12 << 20], (DType::U8, device))?;
    let loss = hidden.mm(&weights[1])?.pow(2)?.mean()?.add(&large.narrow(0, 0, 1)?.sum()?.to(DType::F32)?)?;
    loss.backward()?;
    let value = loss.item()?.as_f64();
    weights.iter().for_each(Tensor::clear_grad);
    Ok(value)
}

#[test]
fn running_out_of_memory_anywhere_in_a_step_is_an_error_and_the_step_can_be_taken_again() {
    static FAILURES: Failures = Failures(AtomicUsize::new(0));
    let name = "faults::running_out_of_memory_anywhere_in_a_step_is_an_error_and_the_step_can_be_taken_again";
    let weights = || {
        [numbers(&[900, 700], 1), numbers(&[700, 300], 2)].map(|w| w.mul(0.05).unwrap().with_grad().unwrap())
    };
    // One failure is made up for by freeing the cache and asking again, for less: three in a row are not.
    let fail = |n: usize| [n, n + 1, n + 2].map(|call| format!("aclrtMalloc:{call}:207001")).join(",");
    let cases: Vec<String> = (1..=5).map(fail).collect();
    let variables: Vec<Vec<(&str, &str)>> =
        cases.iter().map(|case| vec![("CRESSET_SIM_FAIL", &case[..])]).collect();
    alone_each(name, &variables, || {
        let slot = Slot::claim(&FAILURES).expect("a slot is free");
        slot.set_active(true);
        let expected = step(&weights()).unwrap();
        let there = loop {
            // The first piece may be the one that is missing.
            match weights().map(|w| w.detach()?.to(npu())?.with_grad()) {
                [Ok(a), Ok(b)] => break [a, b],
                [Err(error), _] | [_, Err(error)] => check_told(&error),
            }
        };
        synchronize(npu()).unwrap();
        let before = memory_allocated(npu());
        let loss = step(&there).unwrap_or_else(|error| {
            check_told(&error);
            drop(error);
            there.iter().for_each(Tensor::clear_grad);
            assert_eq!(memory_allocated(npu()), before, "what a failed step had is given back");
            step(&there).unwrap()
        });
        assert!((loss - expected).abs() < 1e-5, "{loss} {expected}");
        assert_eq!(memory_allocated(npu()), before);
        assert_eq!(FAILURES.0.load(Relaxed), 1, "one event tells of it");
    });
}

fn check_told(error: &Error) {
    assert_eq!(error.cause(), Cause::Memory, "{error}");
    let text = error.to_string();
    for part in ["npu:0 is out of memory: asked for ", " are free, ", " are cached with ", " are allocated"] {
        assert!(text.contains(part), "{part:?} is missing from {text}");
    }
}

/// The library's own words behind an error.
fn acl(error: &Error) -> &AclError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(acl) = error.downcast_ref() {
            return acl;
        }
        cause = error.source();
    }
    panic!("{error} is no error of the library");
}

#[test]
fn a_kernel_that_failed_is_named_when_it_is_waited_for() {
    let name = "faults::a_kernel_that_failed_is_named_when_it_is_waited_for";
    alone(name, &[("CRESSET_SIM_FAIL", "aclnnExp:1:507015")], || {
        let x = Tensor::ones([4], npu()).unwrap();
        let y = x.exp().unwrap();
        let z = y.add(1).unwrap();
        let error = z.to_vec::<f32>().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("failed with code 507015 (ACL_ERROR_RT_AICORE_EXCEPTION)"), "{text}");
        assert!(text.contains("launched by aten::exp"), "{text}");
        let launched_by = acl(&error).launched_by.expect("it is known");
        assert_eq!((launched_by.op, launched_by.function), ("aten::exp", "aclnnExp"));
        assert_eq!(launched_by.or_later, 0);
        assert_eq!(x.add(1).unwrap().to_vec::<f32>().unwrap(), [2.0; 4], "the next call succeeds");
    });
}

#[test]
fn a_kernel_of_a_derivative_that_failed_is_named() {
    let name = "faults::a_kernel_of_a_derivative_that_failed_is_named";
    alone(name, &[("CRESSET_SIM_FAIL", "aclnnTanhBackward:1:507015")], || {
        let x = numbers(&[4], 1).to(npu()).unwrap().with_grad().unwrap();
        let loss = x.tanh().unwrap().sum().unwrap();
        let failed = loss.backward().and_then(|()| synchronize(npu()));
        let text = failed.unwrap_err().to_string();
        assert!(text.contains("launched by aten::tanh_backward"), "{text}");
    });
}

#[test]
fn with_blocking_launches_the_call_itself_fails() {
    let name = "faults::with_blocking_launches_the_call_itself_fails";
    let variables = [("CRESSET_SIM_FAIL", "aclnnExp:2:507015"), ("CRESSET_NPU_BLOCKING", "1")];
    alone(name, &variables, || {
        assert!(launch_blocking());
        let x = Tensor::ones([4], npu()).unwrap();
        assert!(x.exp().is_ok());
        let text = x.exp().unwrap_err().to_string();
        assert!(text.starts_with("aten::exp: aclrtSynchronizeStream failed with code 507015"), "{text}");
        assert!(x.exp().is_ok());
    });
}

#[test]
fn a_lost_device_is_an_error_from_then_on_and_the_host_goes_on() {
    let name = "faults::a_lost_device_is_an_error_from_then_on_and_the_host_goes_on";
    let variables = [("CRESSET_SIM_FAIL", "aclrtSynchronizeDevice:1:507899"), ("CRESSET_SIM_DEVICES", "2")];
    alone(name, &variables, || {
        let npu = npu();
        let (x, stream) = (Tensor::ones([4], npu).unwrap(), cresset_npu::Stream::new(npu).unwrap());
        let event = stream.record().unwrap();
        let text = synchronize(npu).unwrap_err().to_string();
        assert!(text.contains("code 507899 (ACL_ERROR_RT_DRV_INTERNAL_ERROR)"), "{text}");
        assert!(
            text.ends_with("the device is lost to this process: look at npu-smi, then start again"),
            "{text}"
        );
        let again = [x.add(1).map(drop), x.to_vec::<f32>().map(drop), synchronize(npu), stream.synchronize()];
        for outcome in again {
            let text = outcome.unwrap_err().to_string();
            assert!(text.contains("code 507899") && text.contains("is lost to this process"), "{text}");
        }
        drop((x, stream, event));
        let host = Tensor::ones([4], ()).unwrap().add(1).unwrap();
        assert_eq!(host.to_vec::<f32>().unwrap(), [2.0; 4]);
        let other = host.to(cresset_npu::device(1)).unwrap();
        assert_eq!(other.add(1).unwrap().to_vec::<f32>().unwrap(), [3.0; 4], "the other device is not lost");
    });
}

#[test]
fn a_forked_process_has_no_devices_and_ends_by_itself() {
    alone("faults::a_forked_process_has_no_devices_and_ends_by_itself", &[], || {
        let npu = npu();
        let x = Tensor::ones([4], npu).unwrap();
        let host = x
            .to(cresset_tensor::To {
                device: Some(cresset_tensor::Device::CPU),
                non_blocking: true,
                ..Default::default()
            })
            .unwrap();
        synchronize(npu).unwrap();
        // SAFETY: the child touches nothing that other threads may hold a lock of, but what is tested here.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let refused = x.add(1).map_err(|error| error.to_string());
            let told = "an npu cannot be used in a forked process";
            let right = refused.is_err_and(|text| text.contains(told)) && synchronize(npu).is_err();
            drop((x, host));
            // SAFETY: ends the child without running what the parent's tests have to run.
            unsafe { libc::_exit(if right { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: the result has a place.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(libc::WEXITSTATUS(status), 0, "the child was told");
        assert!(libc::WIFEXITED(status));
        assert_eq!(x.add(1).unwrap().to_vec::<f32>().unwrap(), [2.0; 4], "the parent goes on");
    });
}

#[test]
fn a_process_ends_while_its_device_is_at_work() {
    alone(
        "faults::a_process_ends_while_its_device_is_at_work",
        &[("CRESSET_SIM_DELAY_US", "100000")],
        || {
            let mut x = Tensor::ones([4], npu()).unwrap();
            for _ in 0..1000 {
                x = x.add(&x).unwrap();
            }
            assert!(!cresset_npu::Stream::current(npu()).unwrap().query().unwrap());
        },
    );
}

#[test]
fn tensors_may_be_dropped_by_threads_that_never_saw_the_device() {
    let x = Tensor::ones([4], npu()).unwrap();
    let y = x.add(1).unwrap();
    std::thread::spawn(move || drop(x)).join().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0; 4]);
}

#[test]
fn what_failed_while_something_was_dropped_is_told_later() {
    let name = "faults::what_failed_while_something_was_dropped_is_told_later";
    alone(name, &[("CRESSET_SIM_FAIL", "aclrtDestroyStream:1:507000")], || {
        let npu = npu();
        drop(cresset_npu::Stream::new(npu).unwrap());
        let text = synchronize(npu).unwrap_err().to_string();
        assert!(text.contains("aclrtDestroyStream failed with code 507000"), "{text}");
        assert!(synchronize(npu).is_ok());
    });
}

#[test]
fn a_device_that_does_not_exist_is_refused() {
    alone("faults::a_device_that_does_not_exist_is_refused", &[("CRESSET_SIM_DEVICES", "2")], || {
        npu();
        let beyond = cresset_npu::device(2);
        let told = "npu:2 does not exist: the last one is npu:1";
        let host = Tensor::ones([4], ()).unwrap();
        for outcome in [Tensor::ones([4], beyond), host.to(beyond)] {
            let error = outcome.unwrap_err();
            assert_eq!(error.cause(), Cause::Device);
            assert!(error.to_string().ends_with(told), "{error}");
        }
        for outcome in [cresset_npu::set_device(beyond), synchronize(beyond)] {
            let text = outcome.unwrap_err().to_string();
            assert_eq!(text, "npu:2 is not one of the 2 npu devices");
        }
        assert_eq!(host.to(cresset_npu::device(1)).unwrap().to_vec::<f32>().unwrap(), [1.0; 4]);
    });
}

#[test]
fn tensors_on_two_devices_are_refused_and_stay_as_they_are() {
    let name = "faults::tensors_on_two_devices_are_refused_and_stay_as_they_are";
    alone(name, &[("CRESSET_SIM_DEVICES", "2")], || {
        let host = Tensor::ones([2, 2], ()).unwrap();
        let [one, two] = [npu(), cresset_npu::device(1)].map(|device| host.to(device).unwrap());
        let refused = [
            (
                one.add(&two),
                "aten::add: tensors are on npu:0 and npu:1, of shapes [2, 2] and [2, 2]; move them to one device with to()",
            ),
            (
                host.mm(&one),
                "aten::mm: tensors are on cpu and npu:0, of shapes [2, 2] and [2, 2]; move them to one device with to()",
            ),
            (
                one.add_(&host).map(|()| host.clone()),
                "aten::add_: tensors are on npu:0 and cpu, of shapes [2, 2] and [2, 2]; move them to one device with to()",
            ),
        ];
        for (outcome, told) in refused {
            let error = outcome.unwrap_err();
            assert_eq!((error.cause(), error.to_string().as_str()), (Cause::Device, told));
        }
        for tensor in [&host, &one, &two] {
            assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0; 4]);
        }
    });
}

#[test]
fn the_host_cannot_look_into_a_devices_memory() {
    let x = Tensor::ones([4], npu()).unwrap();
    assert!(x.storage().host().is_none());
    let seen = x.clone();
    let looked = std::thread::spawn(move || seen.read().bytes().len()).join().unwrap_err();
    assert_eq!(
        looked.downcast_ref::<String>().unwrap(),
        "the elements are on npu:0, where the host cannot look: copy them with to(Device::CPU)"
    );
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0; 4]);
}

#[test]
fn a_copy_that_failed_is_named_when_it_is_waited_for() {
    let name = "faults::a_copy_that_failed_is_named_when_it_is_waited_for";
    alone(name, &[("CRESSET_SIM_FAIL", "aclrtMemcpyAsync:1:507015")], || {
        let host = Tensor::ones([4], ()).unwrap();
        let failed = host.to(npu()).and_then(|there| there.to_vec::<f32>());
        let text = failed.unwrap_err().to_string();
        assert!(text.contains("aclrtMemcpyAsync") && text.contains("code 507015"), "{text}");
        assert_eq!(host.to_vec::<f32>().unwrap(), [1.0; 4], "what the host has is intact");
        assert_eq!(host.to(npu()).unwrap().to_vec::<f32>().unwrap(), [1.0; 4], "the next copy succeeds");
    });
}
