//! Streams and events: order where it was asked for, and memory that is safe without asking.

use crate::support::{alone, npu, numbers};
use cresset_npu::{Event, Stream, memory_allocated, synchronize};
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
        assert!(!ready.query().unwrap() && !first.is_done().unwrap());
        drop(on);
        let on = second.enter();
        second.wait(&ready).unwrap();
        let y = x.add(1).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [1025.0; 8]);
        drop(on);
        assert!(first.is_done().unwrap() && Stream::current(npu).is_done().unwrap());
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
        let text = Stream::new(device).err().expect("there is no such device").to_string();
        assert_eq!(text, format!("{device} is not one of the 1 npu devices"));
    }
}
