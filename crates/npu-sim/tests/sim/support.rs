//! Short forms of what every C program does.

use cresset_acl::constant::{copy, dtype, format};
use cresset_acl::types::*;
pub(crate) use cresset_npu_sim::abi::operators;
pub(crate) use cresset_npu_sim::*;
use std::ffi::CStr;
use std::process::{Command, Output};
use std::ptr::{null, null_mut};

/// What a call returned: a code and the text for it.
pub(crate) type Outcome = Result<(), (Status, String)>;

pub(crate) fn outcome(status: Status) -> Outcome {
    if status == 0 { Ok(()) } else { Err((status, recent())) }
}

/// The code of an expected failure, and its text.
#[track_caller]
pub(crate) fn failure(status: Status) -> (Status, String) {
    outcome(status).expect_err("the call should have failed")
}

#[track_caller]
pub(crate) fn ok(status: Status) {
    outcome(status).unwrap();
}

pub(crate) fn recent() -> String {
    // SAFETY: the text lives until the next call.
    let text = unsafe { aclGetRecentErrMsg() };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as above, and it ends with a zero byte.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

/// Lets this thread use device 0, with a context and so a default stream of its own.
pub(crate) fn open() {
    let mut context = null_mut();
    // SAFETY: the place may be written.
    unsafe {
        aclInit(null());
        ok(aclrtSetDevice(0));
        ok(aclrtCreateContext(&mut context, 0));
    }
    recent();
}

pub(crate) fn synchronize() -> Outcome {
    // SAFETY: a plain call.
    outcome(unsafe { aclrtSynchronizeStream(null_mut()) })
}

pub(crate) fn new_stream() -> Stream {
    let mut stream = null_mut();
    // SAFETY: the place may be written.
    ok(unsafe { aclrtCreateStream(&mut stream) });
    stream
}

/// Device memory, freed at the end.
pub(crate) struct Block(pub(crate) *mut c_void);

impl Block {
    pub(crate) fn new(bytes: usize) -> Block {
        let mut address = null_mut();
        // SAFETY: the place may be written.
        ok(unsafe { aclrtMalloc(&mut address, bytes, 0) });
        Block(address)
    }

    pub(crate) fn of<T: Copy>(values: &[T]) -> Block {
        let block = Block::new(size_of_val(values).max(1));
        block.set(values);
        block
    }

    pub(crate) fn set<T: Copy>(&self, values: &[T]) {
        let bytes = size_of_val(values);
        // SAFETY: the values may be read.
        ok(unsafe { aclrtMemcpy(self.0, bytes, values.as_ptr().cast(), bytes, copy::HOST_TO_DEVICE) });
    }

    pub(crate) fn get<T: Copy + Default>(&self, count: usize) -> Vec<T> {
        let mut values = vec![T::default(); count];
        let bytes = size_of_val(&values[..]);
        // SAFETY: the values may be written.
        ok(unsafe { aclrtMemcpy(values.as_mut_ptr().cast(), bytes, self.0, bytes, copy::DEVICE_TO_HOST) });
        values
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: a plain call; a test may have freed it itself.
        unsafe { aclrtFree(self.0) };
    }
}

/// An element type as C names it.
pub(crate) trait Element: Copy + Default {
    const NUMBER: i32;
}

impl Element for f32 {
    const NUMBER: i32 = dtype::FLOAT;
}

impl Element for i64 {
    const NUMBER: i32 = dtype::INT64;
}

impl Element for i32 {
    const NUMBER: i32 = dtype::INT32;
}

impl Element for u8 {
    const NUMBER: i32 = dtype::BOOL;
}

/// A tensor with memory of its own and a descriptor.
pub(crate) struct Tensor<T = f32> {
    pub(crate) block: Block,
    pub(crate) raw: *mut TensorHandle,
    shape: Vec<i64>,
    /// Where each element is, in row-major order.
    places: Vec<usize>,
    room: usize,
    _elements: std::marker::PhantomData<T>,
}

impl<T: Element> Tensor<T> {
    /// Row-major.
    pub(crate) fn new(shape: &[i64], values: &[T]) -> Tensor<T> {
        let mut strides = vec![1; shape.len()];
        for dim in (1..shape.len()).rev() {
            strides[dim - 1] = strides[dim] * shape[dim].max(1);
        }
        Tensor::strided(shape, &strides, 0, values)
    }

    /// Column-major with a gap and an offset, so that nothing is contiguous.
    pub(crate) fn scattered(shape: &[i64], values: &[T]) -> Tensor<T> {
        let mut strides = vec![2; shape.len()];
        for dim in 1..shape.len() {
            strides[dim] = strides[dim - 1] * shape[dim - 1].max(1);
        }
        Tensor::strided(shape, &strides, 3, values)
    }

    pub(crate) fn strided(shape: &[i64], strides: &[i64], offset: i64, values: &[T]) -> Tensor<T> {
        let mut places = vec![offset as usize];
        for (&size, &stride) in shape.iter().zip(strides) {
            places =
                places.iter().flat_map(|&at| (0..size).map(move |i| at + (i * stride) as usize)).collect();
        }
        let room = places.iter().max().map_or(1, |last| last + 1);
        let block = Block::of(&vec![T::default(); room]);
        let storage = [room as i64];
        // SAFETY: all arrays are as long as their counts say.
        let raw = unsafe {
            aclCreateTensor(
                shape.as_ptr(),
                shape.len() as u64,
                T::NUMBER,
                strides.as_ptr(),
                offset,
                format::ND,
                storage.as_ptr(),
                1,
                block.0,
            )
        };
        assert!(!raw.is_null(), "{}", recent());
        let tensor =
            Tensor { block, raw, shape: shape.to_vec(), places, room, _elements: std::marker::PhantomData };
        tensor.set(values);
        tensor
    }

    pub(crate) fn set(&self, values: &[T]) {
        assert_eq!(values.len(), self.places.len(), "{:?}", self.shape);
        let mut memory = self.block.get::<T>(self.room);
        self.places.iter().zip(values).for_each(|(&place, &value)| memory[place] = value);
        self.block.set(&memory);
    }

    pub(crate) fn get(&self) -> Vec<T> {
        let memory = self.block.get::<T>(self.room);
        self.places.iter().map(|&place| memory[place]).collect()
    }
}

impl<T> Drop for Tensor<T> {
    fn drop(&mut self) {
        // SAFETY: a plain call.
        unsafe { aclDestroyTensor(self.raw) };
    }
}

pub(crate) fn scalar(value: f32) -> *mut ScalarHandle {
    // SAFETY: the value may be read.
    unsafe { aclCreateScalar((&raw const value).cast_mut().cast(), dtype::FLOAT) }
}

pub(crate) fn ints(values: &[i64]) -> *mut IntArrayHandle {
    // SAFETY: as many as the count says.
    unsafe { aclCreateIntArray(values.as_ptr(), values.len() as u64) }
}

/// Runs a planned operator on a stream, with the workspace it asks for.
pub(crate) fn finish(
    status: Status,
    size: u64,
    executor: *mut Executor,
    run: RunOperator,
    stream: Stream,
) -> Outcome {
    outcome(status)?;
    let workspace = (size > 0).then(|| Block::new(size as usize));
    let address = workspace.as_ref().map_or(null_mut(), |block| block.0);
    // SAFETY: plain calls.
    outcome(unsafe { run(address, size, executor, stream) })?;
    // SAFETY: plain calls.
    outcome(unsafe { aclrtSynchronizeStream(stream) })
}

/// `run!(add(x, y, alpha, out))`: plans and runs an operator on the default stream, and waits.
macro_rules! run {
    ($operator:ident($($argument:expr),* $(,)?)) => {{
        let (mut size, mut executor) = (0, std::ptr::null_mut());
        // SAFETY: the places for results may be written.
        let status = unsafe { $crate::support::operators::$operator::plan($($argument,)* &mut size, &mut executor) };
        $crate::support::finish(status, size, executor, $crate::support::operators::$operator::run, std::ptr::null_mut())
    }};
}
pub(crate) use run;

/// Whether this process is a test run again by itself, to be on its own.
pub(crate) fn is_child() -> bool {
    std::env::var_os("CRESSET_SIM_TEST_CHILD").is_some()
}

/// Runs one test again in a process of its own, with some environment.
pub(crate) fn child(test: &str, environment: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("CRESSET_SIM_TEST_CHILD", "1")
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

/// As [`child`], and expects success.
#[track_caller]
pub(crate) fn alone(test: &str, environment: &[(&str, &str)]) {
    let output = child(test, environment);
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
