//! A device that this crate has never heard of, plugged in from outside.

use cresset_tensor::backend::{self, Backend};
use cresset_tensor::ops::{Add, Fill, Mul};
use cresset_tensor::{
    Cause, DType, Device, DeviceMemory, Error, Kernel as _, Key, Result, Storage, Tensor, cpu,
};
use std::sync::Mutex;

/// Host memory that pretends to be elsewhere.
struct Block(Mutex<Vec<u8>>);

impl DeviceMemory for Block {
    fn address(&self) -> usize {
        self as *const Block as usize
    }
}

struct Elsewhere;

impl Backend for Elsewhere {
    fn device_count(&self) -> usize {
        2
    }

    fn allocate(&self, _: Device, bytes: usize) -> Result<Box<dyn DeviceMemory>> {
        Ok(Box::new(Block(Mutex::new(vec![0xAA; bytes]))))
    }

    fn upload(&self, from: &[u8], to: &Storage, offset: usize) -> Result<()> {
        block(to).0.lock().unwrap()[offset..offset + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn download(&self, from: &Storage, offset: usize, to: &mut [u8]) -> Result<()> {
        to.copy_from_slice(&block(from).0.lock().unwrap()[offset..offset + to.len()]);
        Ok(())
    }

    fn synchronize(&self, _: Device) -> Result<()> {
        Ok(())
    }
}

fn block(storage: &Storage) -> &Block {
    storage.device_memory().expect("the dispatcher sends this device's tensors only")
}

fn elsewhere() -> Device {
    let key = Key::claim("elsewhere").expect("a slot is free");
    if backend::register(key, &Elsewhere) {
        Add::table().register(key, |_, (a, _), out| {
            let sum: Vec<u8> =
                block(a.storage()).0.lock().unwrap().iter().map(|byte| byte.wrapping_mul(2)).collect();
            block(out.storage()).0.lock().unwrap().copy_from_slice(&sum);
            Ok(())
        });
        Fill::table().register(key, |_, _, _| Err(Error::device_failure("fill", "the device is tired")));
    }
    Device { key, index: 1 }
}

#[test]
fn a_device_from_outside_computes_with_its_own_kernels() {
    let device = elsewhere();
    let x = Tensor::new([1u8, 2, 3]).unwrap().to(device).unwrap();
    assert_eq!(x.device().to_string(), "elsewhere:1");
    let y = x.add(&x).unwrap();
    assert_eq!(y.device(), device);
    assert_eq!(y.to_vec::<u8>().unwrap(), [2, 4, 6]);
    assert_eq!("elsewhere:1".parse::<Device>().unwrap(), device);
}

#[test]
fn a_missing_kernel_and_a_failing_device_say_so() {
    let x = Tensor::new([1u8]).unwrap().to(elsewhere()).unwrap();
    let error = x.mul(&x).unwrap_err();
    assert_eq!(error.cause(), Cause::NoKernel);
    assert!(error.to_string().starts_with("aten::mul: no kernel for elsewhere"), "{error}");
    assert!(Mul::table().get(x.device().key).is_none());
    let nowhere = Device { key: x.device().key, index: 9 };
    let error = x.to(nowhere).unwrap_err();
    assert!(error.to_string().contains("elsewhere:9 does not exist: the last one is elsewhere:1"), "{error}");
}

#[test]
fn tensors_on_two_devices_do_not_meet() {
    let here = Tensor::new([[1u8], [2]]).unwrap();
    let there = Tensor::new([3u8]).unwrap().to(elsewhere()).unwrap();
    let refused = [
        (
            here.add(&there),
            "aten::add: tensors are on cpu and elsewhere:1, of shapes [2, 1] and [1]; move them to one device with to()",
        ),
        (
            Tensor::cat(&[&there, &there, &here.view([2]).unwrap()], 0),
            "aten::cat: tensors are on elsewhere:1 and cpu, of shapes [1] and [2]; move them to one device with to()",
        ),
        (
            here.add_(&there).map(|()| here.clone()),
            "aten::add_: tensors are on cpu and elsewhere:1, of shapes [2, 1] and [1]; move them to one device with to()",
        ),
    ];
    for (outcome, told) in refused {
        let error = outcome.unwrap_err();
        assert_eq!((error.cause(), error.to_string().as_str()), (Cause::Device, told));
    }
    assert_eq!(here.to_vec::<u8>().unwrap(), [1, 2]);
}

#[test]
fn the_host_looks_into_its_own_memory_only_and_says_so() {
    let here = Tensor::new([1.0f32, 2.0]).unwrap();
    let there = here.to(elsewhere()).unwrap();
    let nowhere = Tensor::empty([2], Device::META).unwrap();
    for away in [&there, &nowhere] {
        let outcomes = [
            away.reading().map(drop),
            away.writing().map(drop),
            cpu::map(away, away.dtype(), &here, |_, _| ()),
            cpu::map(&here, here.dtype(), away, |_, _| ()),
            cpu::map2(away.into(), 1.0.into(), away.dtype(), &here, |_, _, _| ()),
            cpu::map2((&here).into(), away.into(), away.dtype(), &here, |_, _, _| ()),
            cpu::map2((&here).into(), 1.0.into(), away.dtype(), away, |_, _, _| ()),
            cpu::map_all([away.into()], away.dtype(), &here, |_, _| ()),
            cpu::map_all([away.into()], DType::F64, &here, |_, _| ()),
            cpu::map_all([(&here).into()], away.dtype(), away, |_, _| ()),
            cpu::change(away, [], |_, []| ()),
            cpu::change(&here, [away.into()], |_, [_]| ()),
            cpu::change(away, [away.into()], |_, [_]| ()),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert_eq!(error.cause(), Cause::Device);
            let told = format!(
                "the elements are on {}, where the host cannot look: copy them with to(Device::CPU)",
                away.device()
            );
            assert_eq!(error.to_string(), told);
        }
    }
    assert_eq!(here.reading().unwrap().bytes().len(), 8);
}
