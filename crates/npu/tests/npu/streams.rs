//! Streams and events: order where it was asked for, and memory that is safe without asking.

use crate::support::{alone, npu, numbers};
use cresset_npu::{Event, Stream, current_device, enter_device, memory_allocated, set_device, synchronize};
use cresset_tensor::{Device, Tensor};

#[test]
fn an_event_orders_two_streams() {
    alone("streams::an_event_orders_two_streams", &[("CRESSET_SIM_DELAY_US", "300")], || {
        let npu = npu();
        let (first, second) = (Stream::new(npu).unwrap(), Stream::new(npu).unwrap());
        let ready = Event::new(npu).unwrap();
        assert!(ready.query().unwrap(), "nothing was recorded, so nothing is to be waited for");
        let (mut x, on) = (Tensor::ones([8], npu).unwrap(), first.enter());
        synchronize(npu).unwrap();
        for _ in 0..10 {
            x = x.add(&x).unwrap();
        }
        ready.record(&first).unwrap();
        assert!(!ready.query().unwrap() && !first.query().unwrap());
        drop(on);
        let on = second.enter();
        second.wait(&ready).unwrap();
        let y = x.add(1).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [1025.0; 8]);
        drop(on);
        assert!(first.query().unwrap() && Stream::current(npu).unwrap().query().unwrap());
    });
}

#[test]
fn memory_used_on_another_stream_is_not_reused_too_early() {
    let name = "streams::memory_used_on_another_stream_is_not_reused_too_early";
    alone(name, &[("CRESSET_SIM_DELAY_US", "300")], || {
        let npu = npu();
        let side = Stream::new(npu).unwrap();
        let x = Tensor::full([8], 3.0, npu).unwrap();
        synchronize(npu).unwrap();
        let on = side.enter();
        let mut late = x.mul(1).unwrap();
        for _ in 0..10 {
            late = late.mul(1).unwrap();
        }
        // Queued behind ten others; its operand is dropped and its memory wanted at once.
        let sum = late.add(&x).unwrap();
        drop(on);
        drop(x);
        let other = Tensor::full([8], 100.0, npu).unwrap();
        let on = side.enter();
        assert_eq!(sum.to_vec::<f32>().unwrap(), [6.0; 8]);
        drop(on);
        assert_eq!(other.to_vec::<f32>().unwrap(), [100.0; 8]);
        drop((sum, late, other, side));
        assert_eq!(memory_allocated(npu), 0);
        synchronize(npu).unwrap();
    });
}

#[test]
fn a_stream_waits_for_all_that_another_has_to_do() {
    let name = "streams::a_stream_waits_for_all_that_another_has_to_do";
    alone(name, &[("CRESSET_SIM_DELAY_US", "300")], || {
        let npu = npu();
        let side = Stream::new(npu).unwrap();
        let mut x = Tensor::ones([8], npu).unwrap();
        for _ in 0..10 {
            x = x.add(&x).unwrap();
        }
        side.wait_for(&Stream::current(npu).unwrap()).unwrap();
        let _on_side = side.enter();
        assert_eq!(Stream::current(npu).unwrap(), side);
        assert_eq!(x.add(1).unwrap().to_vec::<f32>().unwrap(), [1025.0; 8]);
    });
}

#[test]
fn streams_have_priorities() {
    let npu = npu();
    let known = Stream::priorities(npu).unwrap();
    let [first, last] = [*known.start(), *known.end()].map(|p| Stream::with_priority(npu, p).unwrap());
    assert!(first.priority() < last.priority() && first != last);
    assert_eq!(first.device(), npu);
    let error = Stream::with_priority(npu, known.end() + 1).unwrap_err().to_string();
    assert_eq!(error, format!("priority {} is not one of {known:?}", known.end() + 1));
}

#[test]
fn an_event_without_time_orders_and_measures_nothing() {
    let npu = npu();
    let (stream, event) = (Stream::current(npu).unwrap(), Event::untimed(npu).unwrap());
    event.record(&stream).unwrap();
    event.synchronize().unwrap();
    assert!(event.query().unwrap());
    assert!(event.elapsed(&stream.record().unwrap()).is_err());
}

#[test]
fn a_thread_has_a_device_of_its_own_choice() {
    alone("streams::a_thread_has_a_device_of_its_own_choice", &[("CRESSET_SIM_DEVICES", "2")], || {
        npu();
        let [first, second] = [0, 1].map(cresset_npu::device);
        let inner = enter_device(second).unwrap();
        assert_eq!(current_device(), second);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(current_device(), first, "a thread that never set a device has the first one");
                assert!(Tensor::ones([2], current_device()).unwrap().add(1).is_ok());
            });
        });
        drop(inner);
        assert_eq!(current_device(), first);
        let error = set_device(cresset_npu::device(2)).unwrap_err().to_string();
        assert_eq!(error, "npu:2 is not one of the 2 npu devices");
    });
}

#[test]
fn events_take_the_time() {
    let npu = npu();
    let (stream, start, end) =
        (Stream::new(npu).unwrap(), Event::new(npu).unwrap(), Event::new(npu).unwrap());
    assert!(start.elapsed(&end).is_err(), "neither was recorded");
    let on = stream.enter();
    let x = numbers(&[128, 128], 1).to(npu).unwrap();
    start.record(&stream).unwrap();
    let product = x.mm(&x).unwrap();
    end.record(&stream).unwrap();
    drop(on);
    end.synchronize().unwrap();
    assert!(start.elapsed(&end).unwrap().as_nanos() > 0);
    assert!(end.elapsed(&start).unwrap().is_zero());
    stream.synchronize().unwrap();
    drop(product);
}

#[test]
fn every_thread_can_use_the_device() {
    let npu = npu();
    let x = numbers(&[32], 1).to(npu).unwrap();
    let expected = x.mul(2).unwrap().to_vec::<f32>().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(x.add(&x).unwrap().to_vec::<f32>().unwrap(), expected);
                }
            });
        }
    });
}

#[test]
fn a_failure_in_a_stream_is_told_when_it_is_waited_for() {
    let name = "streams::a_failure_in_a_stream_is_told_when_it_is_waited_for";
    alone(name, &[("CRESSET_SIM_FAIL", "aclnnAdd:1:507015")], || {
        let x = Tensor::ones([4], npu()).unwrap();
        let sum = x.add(&x).unwrap();
        let text = synchronize(npu()).unwrap_err().to_string();
        assert!(
            text.contains("aclrtSynchronizeDevice failed with code 507015 (ACL_ERROR_RT_AICORE_EXCEPTION)"),
            "{text}"
        );
        assert!(synchronize(npu()).is_ok());
        drop(sum);
    });
}

#[test]
fn one_thread_can_use_two_devices() {
    alone("streams::one_thread_can_use_two_devices", &[("CRESSET_SIM_DEVICES", "2")], || {
        npu();
        let [first, second] = [0, 1].map(cresset_npu::device);
        let x = numbers(&[8], 1).to(first).unwrap();
        let y = x.add(1).unwrap().to(second).unwrap();
        let error = x.add(&y).unwrap_err().to_string();
        assert!(error.contains("tensors are on npu:0 and npu:1"), "{error}");
        let there = y.mul(&y).unwrap().sub(&x.to(second).unwrap()).unwrap();
        let here = x.add(1).unwrap().mul(&x.add(1).unwrap()).unwrap().sub(&x).unwrap();
        assert_eq!(there.to_vec::<f32>().unwrap(), here.to_vec::<f32>().unwrap());
        assert!(memory_allocated(first) > 0 && memory_allocated(second) > 0);
        drop((x, y, there, here));
        assert_eq!((memory_allocated(first), memory_allocated(second)), (0, 0));
    });
}

#[test]
fn only_devices_that_exist_have_streams() {
    npu();
    for device in [Device::CPU, cresset_npu::device(9)] {
        let text = Stream::new(device).expect_err("there is no such device").to_string();
        assert_eq!(text, format!("{device} is not one of the 1 npu devices"));
    }
}
