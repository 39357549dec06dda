//! Versions, what a device has, and settings that are remembered.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::put;
use crate::config::CONFIG;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Result, call, fail};
use crate::objects;
use cresset_acl::structure::{ErrorInfo, Utilization, Uuid};
use cresset_acl::types::{DeviceCallback, PackageVersion, Status, c_char, c_void};
use cresset_acl::{code, constant};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, Ordering};

/// What an Ascend 910B3 has.
const CUBE_CORES: i64 = 20;
const VECTOR_CORES: i64 = 40;
const PROCESSORS: i64 = 6;
const CACHE_BYTES: i64 = 192 << 20;

/// The version of the interface.
///
/// # Safety
/// The pointers are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetVersion(major: *mut i32, minor: *mut i32, patch: *mut i32) -> Status {
    call("aclrtGetVersion", || {
        let newer = CONFIG.release.numbers >= [8, 2, 0];
        // SAFETY: by the caller's promise.
        unsafe { put(major, 1).and(put(minor, if newer { 17 } else { 13 })).and(put(patch, 0)) }
    })
}

/// The name of the chip.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetSocName() -> *const c_char {
    CONFIG.soc.as_ptr()
}

/// The release of a package of the toolkit: all have the same.
///
/// # Safety
/// `version` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclsysGetCANNVersion(package: i32, version: *mut PackageVersion) -> Status {
    call("aclsysGetCANNVersion", || {
        if !(0..=7).contains(&package) {
            fail!(code::INVALID_PARAM, "there is no package {package}");
        }
        let text = CONFIG.release.text.to_bytes();
        let mut answer = PackageVersion::NONE;
        write(&mut answer.version, text);
        let mut parts = text.split(|byte| *byte == b'.');
        for field in [&mut answer.major, &mut answer.minor, &mut answer.release, &mut answer.patch] {
            write(field, parts.next().unwrap_or_default());
        }
        // SAFETY: by the caller's promise.
        unsafe { put(version, answer) }
    })
}

/// Writes text, which leaves room for the zero byte that ends it.
fn write(field: &mut [c_char], text: &[u8]) {
    let room = field.len() - 1;
    for (to, from) in field[..room].iter_mut().zip(text) {
        *to = *from as c_char;
    }
}

/// The release of a package, by its name: all have the same.
///
/// # Safety
/// `package` is null or text ended by a zero byte; `version` is null or has room for 128 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclsysGetVersionStr(package: *mut c_char, version: *mut c_char) -> Status {
    call("aclsysGetVersionStr", || {
        let text = CONFIG.release.text.as_bytes_with_nul();
        if package.is_null() || version.is_null() {
            fail!(code::INVALID_PARAM, "the package or the place for its version is null");
        }
        // SAFETY: not null, so the caller vouches for it; no release is that long.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), version, text.len().min(128)) };
        Ok(())
    })
}

/// The release of a package as a number, by its name: all have the same.
///
/// # Safety
/// `package` is null or text ended by a zero byte; `number` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclsysGetVersionNum(package: *mut c_char, number: *mut i32) -> Status {
    call("aclsysGetVersionNum", || {
        if package.is_null() {
            fail!(code::INVALID_PARAM, "the package is null");
        }
        let [major, minor, patch] = CONFIG.release.numbers;
        // SAFETY: by the caller's promise.
        unsafe { put(number, major * 10_000_000 + minor * 100_000 + patch * 1_000) }
    })
}

/// Whether an installation can do something.
///
/// # Safety
/// `value` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetCannAttribute(attribute: i32, value: *mut i32) -> Status {
    call("aclGetCannAttribute", || {
        if !ATTRIBUTES.contains(&attribute) {
            fail!(code::INVALID_PARAM, "there is no attribute {attribute}");
        }
        let can = attribute != constant::attribute::JIT_COMPILE;
        // SAFETY: by the caller's promise.
        unsafe { put(value, can as i32) }
    })
}

static ATTRIBUTES: [i32; 3] =
    [constant::attribute::INF_NAN, constant::attribute::BF16, constant::attribute::JIT_COMPILE];

/// What can be asked of an installation.
///
/// # Safety
/// `attributes` and `count` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetCannAttributeList(attributes: *mut *const i32, count: *mut usize) -> Status {
    call("aclGetCannAttributeList", || {
        // SAFETY: by the caller's promise.
        unsafe { put(attributes, ATTRIBUTES.as_ptr()).and(put(count, ATTRIBUTES.len())) }
    })
}

/// What a device has.
///
/// # Safety
/// `value` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetDeviceCapability(device: u32, what: i32, value: *mut i64) -> Status {
    call("aclGetDeviceCapability", || {
        Device::by_id(device as i32)?;
        let answer = match what {
            constant::capability::AI_CORES => CUBE_CORES,
            constant::capability::VECTOR_CORES => VECTOR_CORES,
            constant::capability::L2_BYTES => CACHE_BYTES,
            _ => fail!(code::INVALID_PARAM, "there is no capability {what}"),
        };
        // SAFETY: by the caller's promise.
        unsafe { put(value, answer) }
    })
}

/// What a device has.
///
/// # Safety
/// `value` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetDeviceInfo(device: u32, attribute: i32, value: *mut i64) -> Status {
    call("aclrtGetDeviceInfo", || {
        let device = Device::by_id(device as i32)?;
        use constant::device_attribute as attributes;
        let answer = match attribute {
            attributes::AICPU_CORES => PROCESSORS,
            attributes::AI_CORES | attributes::CUBE_CORES => CUBE_CORES,
            attributes::VECTOR_CORES => VECTOR_CORES,
            attributes::MEMORY_BYTES => device.memory.room().1 as i64,
            attributes::CACHE_BYTES => CACHE_BYTES,
            attributes::CHIP => device.id as i64,
            attributes::IS_VIRTUAL => 1,
            _ => fail!(code::RT_FEATURE_NOT_SUPPORT, "attribute {attribute} is not simulated"),
        };
        // SAFETY: by the caller's promise.
        unsafe { put(value, answer) }
    })
}

/// Bytes of an element; 0 for a type that is not known.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDataTypeSize(dtype: i32) -> usize {
    objects::bytes_of(dtype)
}

/// Where the program runs: on a host with a card.
///
/// # Safety
/// `mode` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetRunMode(mode: *mut i32) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtGetRunMode", || unsafe { put(mode, constant::run_mode::HOST) })
}

/// Whether a device is well: it is.
///
/// # Safety
/// `status` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtQueryDeviceStatus(device: i32, status: *mut i32) -> Status {
    call("aclrtQueryDeviceStatus", || {
        Device::by_id(device)?;
        // SAFETY: by the caller's promise.
        unsafe { put(status, 0) }
    })
}

/// What is broken in a device: nothing is. Clients ask after every failure, whatever it was.
///
/// # Safety
/// `error` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetErrorVerbose(device: i32, error: *mut ErrorInfo) -> Status {
    call("aclrtGetErrorVerbose", || {
        Device::by_id(device)?;
        let kind = constant::device_error::NONE;
        let healthy = ErrorInfo { repairable: 0, has_detail: 0, reserved: [0; 2], kind, detail: [0; 321] };
        // SAFETY: by the caller's promise.
        unsafe { put(error, healthy) }
    })
}

/// How busy a device is: wholly while a stream has work.
///
/// # Safety
/// `utilization` is null or may be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetDeviceUtilizationRate(device: i32, utilization: *mut Utilization) -> Status {
    call("aclrtGetDeviceUtilizationRate", || {
        let device = Device::by_id(device)?;
        let busy = if device.busy_streams() > 0 { 100 } else { 0 };
        let (used, _) = device.memory.usage();
        let memory = (used * 100 / device.memory.room().1.max(1)) as i32;
        let extended = std::ptr::null_mut();
        let answer = Utilization { cube: busy, vector: busy, processor: 0, memory, extended };
        // SAFETY: by the caller's promise.
        unsafe { put(utilization, answer) }
    })
}

/// A number by which a device is known.
///
/// # Safety
/// `uuid` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDeviceGetUuid(device: i32, uuid: *mut Uuid) -> Status {
    call("aclrtDeviceGetUuid", || {
        let mut bytes = *b"simulated npu  0";
        bytes[15] = b'0' + (Device::by_id(device)?.id % 10) as u8;
        // SAFETY: by the caller's promise.
        unsafe { put(uuid, Uuid { bytes }) }
    })
}

/// The number of this process, as the host sees it.
///
/// # Safety
/// `process` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDeviceGetBareTgid(process: *mut i32) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtDeviceGetBareTgid", || unsafe { put(process, std::process::id() as i32) })
}

/// The device behind the number that a user gives: the same.
///
/// # Safety
/// `logic` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetLogicDevIdByUserDevId(user: i32, logic: *mut i32) -> Status {
    call("aclrtGetLogicDevIdByUserDevId", || {
        Device::by_id(user)?;
        // SAFETY: by the caller's promise.
        unsafe { put(logic, user) }
    })
}

/// What `aclrtSetSysParamOpt` was told.
static PARAMETERS: Mutex<BTreeMap<i32, i64>> = Mutex::new(BTreeMap::new());

fn known(option: i32) -> Result {
    if !(0..=2).contains(&option) {
        fail!(code::RT_PARAM_INVALID, "there is no parameter {option}");
    }
    Ok(())
}

/// Remembers a setting of the process. All results are the same each time anyway.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetSysParamOpt(option: i32, value: i64) -> Status {
    call("aclrtSetSysParamOpt", || {
        known(option)?;
        PARAMETERS.lock().insert(option, value);
        Ok(())
    })
}

/// A setting of the process.
///
/// # Safety
/// `value` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetSysParamOpt(option: i32, value: *mut i64) -> Status {
    call("aclrtGetSysParamOpt", || {
        known(option)?;
        let answer = PARAMETERS.lock().get(&option).copied().unwrap_or(0);
        // SAFETY: by the caller's promise.
        unsafe { put(value, answer) }
    })
}

/// Remembers a setting of this thread's context.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCtxSetSysParamOpt(option: i32, value: i64) -> Status {
    call("aclrtCtxSetSysParamOpt", || {
        known(option)?;
        Context::current()?.parameters.lock().insert(option, value);
        Ok(())
    })
}

/// A setting of this thread's context, or else of the process.
///
/// # Safety
/// `value` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCtxGetSysParamOpt(option: i32, value: *mut i64) -> Status {
    call("aclrtCtxGetSysParamOpt", || {
        known(option)?;
        let own = Context::current()?.parameters.lock().get(&option).copied();
        let answer = own.or_else(|| PARAMETERS.lock().get(&option).copied()).unwrap_or(0);
        // SAFETY: by the caller's promise.
        unsafe { put(value, answer) }
    })
}

/// What floats do when they become too large.
static OVERFLOW: AtomicI32 = AtomicI32::new(constant::overflow::INF_NAN);

/// Says what floats do when they become too large. Here they always become infinite.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetDeviceSatMode(mode: i32) -> Status {
    call("aclrtSetDeviceSatMode", || {
        match mode {
            constant::overflow::INF_NAN => OVERFLOW.store(mode, Ordering::Relaxed),
            constant::overflow::SATURATION => {
                fail!(code::RT_FEATURE_NOT_SUPPORT, "floats become infinite on this device, and never stay")
            }
            _ => fail!(code::RT_PARAM_INVALID, "there is no overflow mode {mode}"),
        }
        Ok(())
    })
}

/// What floats do when they become too large.
///
/// # Safety
/// `mode` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetDeviceSatMode(mode: *mut i32) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtGetDeviceSatMode", || unsafe { put(mode, OVERFLOW.load(Ordering::Relaxed)) })
}

/// How long a stream waits for another: for ever here.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetOpWaitTimeout(_seconds: u32) -> Status {
    call("aclrtSetOpWaitTimeout", || Ok(()))
}

/// How long a kernel may run: for ever here.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetOpExecuteTimeOut(_seconds: u32) -> Status {
    call("aclrtSetOpExecuteTimeOut", || Ok(()))
}

/// How long a kernel may run: for ever here, whatever is told back.
///
/// # Safety
/// `actual` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetOpExecuteTimeOutV2(microseconds: u64, actual: *mut u64) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtSetOpExecuteTimeOutV2", || unsafe { put(actual, microseconds) })
}

/// Wants to hear of devices that come and go.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtRegDeviceStateCallback(
    _name: *const c_char,
    _callback: Option<DeviceCallback>,
    _data: *mut c_void,
) -> Status {
    call("aclrtRegDeviceStateCallback", || {
        fail!(code::RT_FEATURE_NOT_SUPPORT, "nobody is told of devices that come and go")
    })
}

/// Tells the compiler of operators something: there is none, so nothing changes.
///
/// # Safety
/// `value` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetCompileopt(_option: i32, _value: *const c_char) -> Status {
    call("aclSetCompileopt", || Ok(()))
}

/// What the compiler of operators would answer: it is turned off.
fn compile_option(option: i32) -> &'static CStr {
    if option == constant::compile::JIT { c"disable" } else { c"" }
}

/// What the compiler of operators was told.
///
/// # Safety
/// `value` is null or has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetCompileopt(option: i32, value: *mut c_char, length: usize) -> Status {
    call("aclGetCompileopt", || {
        let text = compile_option(option).to_bytes_with_nul();
        if value.is_null() || length < text.len() {
            fail!(code::INVALID_PARAM, "there is no room for {} bytes", text.len());
        }
        // SAFETY: not null and long enough, by the caller's word.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), value, text.len()) };
        Ok(())
    })
}

/// Bytes of what the compiler of operators was told, with the zero byte that ends it.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetCompileoptSize(option: i32) -> usize {
    compile_option(option).to_bytes_with_nul().len()
}

/// Writes to a log: to none here.
///
/// # Safety
/// None: nothing is looked at, so it does not matter that C passes more arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclAppLog(
    _level: i32,
    _function: *const c_char,
    _file: *const c_char,
    _line: u32,
    _format: *const c_char,
) {
}
