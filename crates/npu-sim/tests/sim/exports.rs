//! What the library exports, against the tables.

use crate::support::*;
use cresset_acl::record::{kind, result};
use cresset_acl::types::c_void;
use std::ffi::{CStr, CString};
use std::ptr::null_mut;

macro_rules! names {
    ($($(#[$doc:meta])* fn $name:ident $arguments:tt -> $result:ty;)*) => {
        &[$(stringify!($name)),*]
    };
}

macro_rules! operator_names {
    ($($name:ident = $symbol:ident $arguments:tt;)*) => {
        &[$(stringify!($symbol), concat!(stringify!($symbol), "GetWorkspaceSize")),*]
    };
}

/// Every name of the tables.
fn names() -> Vec<&'static str> {
    let tables: &[&[&str]] = &[
        cresset_acl::runtime_functions!(names),
        cresset_acl::probed_functions!(names),
        cresset_acl::foreign_runtime_functions!(names),
        cresset_acl::object_functions!(names),
        cresset_acl::foreign_object_functions!(names),
        cresset_acl::activity_functions!(names),
        cresset_acl::foreign_activity_functions!(names),
        cresset_acl::collective_functions!(names),
        cresset_acl::refused_functions!(names),
        cresset_acl::undeclared_functions!(names),
        cresset_acl::operators!(operator_names),
        cresset_acl::foreign_operators!(operator_names),
        &["cressetSimVersion", "cressetSimConfigure", "cressetSimReport"],
    ];
    tables.concat()
}

#[test]
fn the_embedded_table_has_every_function_once() {
    let mut addresses: Vec<*const c_void> =
        names().iter().map(|name| symbol(name).unwrap_or_else(|| panic!("{name} is missing"))).collect();
    let count = addresses.len();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), count);
    assert!(symbol("aclrtNothing").is_none() && symbol("").is_none());
}

/// The shared library that cargo built along with the tests.
fn library() -> *mut c_void {
    let name = "libcresset_npu_sim_library.so";
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().map(|folder| folder.join(name)).find(|path| path.exists());
    let path = path.expect("cargo builds the shared library next to the tests");
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: our own library has no initialisers.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!library.is_null(), "cannot load {path:?}");
    library
}

fn find(library: *mut c_void, name: &str) -> Option<*mut c_void> {
    let symbol = CString::new(name).unwrap();
    // SAFETY: a library that is open.
    let address = unsafe { libc::dlsym(library, symbol.as_ptr()) };
    (!address.is_null()).then_some(address)
}

#[test]
fn the_shared_library_exports_every_function() {
    let library = library();
    let missing: Vec<&str> = names().into_iter().filter(|name| find(library, name).is_none()).collect();
    assert!(missing.is_empty(), "not exported: {missing:?}");
}

#[test]
fn the_shared_library_works_and_wants_to_be_preloaded_for_copies() {
    let library = library();
    let find = |name| find(library, name).unwrap();
    // SAFETY: the types are those of the tables, which the library is checked against.
    unsafe {
        let soc: extern "C" fn() -> *const libc::c_char = std::mem::transmute(find("aclrtGetSocName"));
        assert_eq!(CStr::from_ptr(soc()), c"Ascend910B3 (simulated)");
        let subscribe: extern "C" fn(*mut *mut c_void, *const c_void, *mut c_void) -> i32 =
            std::mem::transmute(find("msptiSubscribe"));
        let enable: extern "C" fn(u32) -> i32 = std::mem::transmute(find("msptiActivityEnable"));
        let mut subscriber = null_mut();
        assert_eq!(subscribe(&mut subscriber, std::ptr::null(), null_mut()), result::SUCCESS);
        assert_eq!(enable(kind::KERNEL), result::SUCCESS);
        assert_eq!(enable(kind::MEMCPY), result::WITHOUT_LD_PRELOAD);
    }
    assert!(NAME.starts_with("cresset"));
}
