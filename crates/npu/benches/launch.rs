//! What a launch costs on the host: the library's functions alone, and through tensors.
//!
//! The difference is what this crate and the dispatcher add. Run with `cargo bench -p cresset-npu`.

use cresset_acl::constant::{dtype, format};
use cresset_acl::types::c_void;
use cresset_npu::{Library, device, init, synchronize};
use cresset_npu_sim::abi::operators::inplace_add;
use cresset_npu_sim::{aclCreateScalar, aclCreateTensor, aclDestroyScalar, aclDestroyTensor};
use cresset_tensor::{DeviceMemory, Memory, Tensor};
use std::ptr;
use std::time::Instant;

const LAUNCHES: u32 = 500;
const ROUNDS: usize = 40;

/// The fastest round, in nanoseconds per launch; the device catches up between rounds.
fn time(name: &str, mut launch: impl FnMut()) -> f64 {
    let mut round = || {
        let start = Instant::now();
        (0..LAUNCHES).for_each(|_| launch());
        let passed = start.elapsed();
        synchronize(device(0)).expect("all launches are right");
        passed.as_nanos() as f64 / f64::from(LAUNCHES)
    };
    let best = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
    println!("{name:<42} {best:7.0} ns");
    best
}

/// The same launch as `x.add_(&x)`, by hand.
fn by_hand(address: *mut c_void) {
    let (dims, strides, mut alpha) = ([2i64, 2], [2i64, 1], 1i64);
    let (mut size, mut executor) = (0, ptr::null_mut());
    // SAFETY: the numbers are valid for the calls, which copy them; every handle is alive
    // while it is used and destroyed once.
    unsafe {
        let tensor = || {
            aclCreateTensor(dims.as_ptr(), 2, dtype::FLOAT, strides.as_ptr(), 0, format::ND, &4, 1, address)
        };
        let (x, other) = (tensor(), tensor());
        let alpha = aclCreateScalar((&raw mut alpha).cast(), dtype::INT64);
        assert_eq!(inplace_add::plan(x, other, alpha, &mut size, &mut executor), 0);
        assert_eq!(inplace_add::run(ptr::null_mut(), size, executor, ptr::null_mut()), 0);
        aclDestroyTensor(x);
        aclDestroyTensor(other);
        aclDestroyScalar(alpha);
    }
}

fn address_of(x: &Tensor) -> usize {
    match x.storage().memory() {
        Memory::Device(memory) => DeviceMemory::address(&**memory),
        _ => unreachable!("the tensor was moved to the device"),
    }
}

fn main() {
    init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol)).expect("a simulator");
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).expect("a literal").to(device(0)).expect("room");
    let address = address_of(&x);
    let alone = time("aclnnInplaceAdd, both functions by hand", || by_hand(address as *mut c_void));
    let in_place = time("x.add_(&x)", || x.add_(&x).expect("shapes fit"));
    let fresh = time("x.add(&x), with new memory", || drop(x.add(&x).expect("shapes fit")));
    let product = time("x.mm(&x), with workspace", || drop(x.mm(&x).expect("shapes fit")));
    println!(
        "\nadded to the library's own time: {:.0} ns in place, {:.0} ns with new memory, {:.0} ns for a product",
        in_place - alone,
        fresh - alone,
        product - alone
    );
}
