//! Which library is loaded, and what is said when none is.

use crate::support::{alone, npu};
use cresset_acl::types::PackageVersion;
use cresset_npu::{Library, info, init, is_available};
use cresset_tensor::Tensor;
use std::ffi::{c_char, c_void};
use std::path::PathBuf;

fn refused(library: Library) -> String {
    init(library).expect_err("there is nothing to load").to_string()
}

#[test]
fn a_missing_library_says_what_was_tried() {
    let variables = [("CRESSET_NPU", "hardware"), ("ASCEND_HOME_PATH", "/nowhere/toolkit")];
    alone("library::a_missing_library_says_what_was_tried", &variables, || {
        let text = refused(Library::installed().or_embedded("sim", cresset_npu_sim::symbol));
        for part in [
            "cannot find libascendcl.so",
            "\n  tried /nowhere/toolkit/lib64/libascendcl.so: cannot open shared object file",
            "\n  tried /usr/local/Ascend/ascend-toolkit/latest/lib64/libascendcl.so: ",
            "\n  tried libascendcl.so: ",
            "\n  source the toolkit's set_env.sh, or set CRESSET_NPU_LIBRARY",
        ] {
            assert!(text.contains(part), "{part:?} is missing from {text}");
        }
        assert!(!is_available() && info().is_err());
    });
}

#[test]
fn a_path_that_was_given_must_load() {
    let variables = [("CRESSET_NPU_LIBRARY", "/nowhere/libother.so")];
    alone("library::a_path_that_was_given_must_load", &variables, || {
        let text = refused(Library::installed().or_embedded("sim", cresset_npu_sim::symbol));
        assert!(
            text.starts_with("cannot load /nowhere/libother.so\n  tried /nowhere/libother.so: "),
            "{text}"
        );
        let text = refused(Library::at("/nowhere/else.so"));
        assert!(text.starts_with("cannot load /nowhere/else.so"), "{text}");
    });
}

#[test]
fn a_library_without_a_symbol_says_which() {
    alone("library::a_library_without_a_symbol_says_which", &[("CRESSET_NPU", "sim")], || {
        let text = refused(Library::installed().or_embedded("half", |name| {
            if name == "aclrtMalloc" { None } else { cresset_npu_sim::symbol(name) }
        }));
        assert!(
            text.contains("cannot load aclrtMalloc: undefined symbol\n  tried half (embedded)"),
            "{text}"
        );
        assert!(
            refused(Library::installed()).contains("CRESSET_NPU=sim, but this program embeds no simulator")
        );
    });
}

#[test]
fn an_operator_that_is_missing_is_noticed_when_it_is_used() {
    let name = "library::an_operator_that_is_missing_is_noticed_when_it_is_used";
    alone(name, &[("CRESSET_NPU", "sim")], || {
        let library = Library::installed().or_embedded("old", |name| {
            if name.starts_with("aclnnExp") { None } else { cresset_npu_sim::symbol(name) }
        });
        init(library).unwrap();
        let x = Tensor::new([1.0f32]).unwrap().to(cresset_npu::device(0)).unwrap();
        assert!(x.add(1).is_ok());
        let text = x.exp().unwrap_err().to_string();
        assert!(text.contains("cannot load aclnnExpGetWorkspaceSize: undefined symbol"), "{text}");
    });
}

#[test]
fn a_library_of_something_else_is_told_apart() {
    alone("library::a_library_of_something_else_is_told_apart", &[], || {
        let text = refused(Library::at("libm.so.6"));
        assert_eq!(
            text,
            "the library is no runtime of Ascend devices: it has no aclInit\n  tried libm.so.6\n  \
             set CRESSET_NPU_LIBRARY to libascendcl.so of the toolkit, or to the directory it lies in"
        );
        assert!(!is_available());
    });
}

#[test]
fn a_stub_for_linking_says_what_to_do() {
    extern "C" fn stub(_: *const c_char) -> i32 {
        100039
    }
    alone("library::a_stub_for_linking_says_what_to_do", &[], || {
        let text = refused(Library::embedded("stub", |name| match name {
            "aclInit" => Some(stub as *const c_void),
            name => cresset_npu_sim::symbol(name),
        }));
        assert!(text.contains("aclInit failed with code 100039 (ACL_ERROR_COMPILING_STUB_MODE)"), "{text}");
        assert!(text.contains("put the toolkit's lib64 before its devlib"), "{text}");
        assert!(!is_available());
    });
}

/// Functions that CANN 8.1.RC1 lacks, of those that are of use here.
const NEWER: [&str; 10] = [
    "aclsysGetVersionNum",
    "aclsysGetVersionStr",
    "aclrtGetDeviceInfo",
    "aclrtStreamGetPriority",
    "aclrtStreamGetFlags",
    "aclrtDeviceGetStreamPriorityRange",
    "aclrtFreeWithDevSync",
    "aclrtGetMemUsageInfo",
    "aclFinalizeReference",
    "msptiActivityIsEnabled",
];

#[test]
fn an_older_release_lacks_what_was_added_and_nothing_else() {
    extern "C" fn version(_: i32, version: *mut PackageVersion) -> i32 {
        for (at, byte) in b"8.1.RC1\0".iter().enumerate() {
            // SAFETY: the caller has a place for the version, and it is longer than this.
            unsafe { (*version).version[at] = *byte as c_char };
        }
        0
    }
    alone("library::an_older_release_lacks_what_was_added_and_nothing_else", &[], || {
        init(Library::embedded("old", |name| match name {
            "aclsysGetCANNVersion" => Some(version as *const c_void),
            name if NEWER.contains(&name) => None,
            name => cresset_npu_sim::symbol(name),
        }))
        .unwrap();
        assert_eq!(info().unwrap().version, "CANN 8.1.0");
        let x = Tensor::new([1.0f32, 2.0]).unwrap().to(cresset_npu::device(0)).unwrap();
        assert_eq!(x.add(&x).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0]);
    });
}

extern "C" fn version_7(_: *mut c_char, number: *mut i32) -> i32 {
    // SAFETY: the caller has a place for the number.
    unsafe { *number = 70_000_000 };
    0
}

extern "C" fn version_9(_: *mut c_char, number: *mut i32) -> i32 {
    // SAFETY: the caller has a place for the number.
    unsafe { *number = 90_100_000 };
    0
}

extern "C" fn version_10(_: *mut c_char, number: *mut i32) -> i32 {
    // SAFETY: the caller has a place for the number.
    unsafe { *number = 100_203_000 };
    0
}

fn claiming(version: &'static str) -> Library {
    macro_rules! claim {
        ($version:ident) => {
            Library::embedded("other", |name| match name {
                "aclsysGetVersionNum" => Some($version as *const c_void),
                name => cresset_npu_sim::symbol(name),
            })
        };
    }
    match version {
        "7.0.0" => claim!(version_7),
        "9.1.0" => claim!(version_9),
        _ => claim!(version_10),
    }
}

#[test]
fn a_major_version_that_is_not_known_is_refused() {
    alone("library::a_major_version_that_is_not_known_is_refused", &[], || {
        for version in ["7.0.0", "10.2.3"] {
            assert_eq!(
                refused(claiming(version)),
                format!(
                    "version {version} of CANN is not known here; known are 8.1 to 9.1, and others of major \
                     version 8 or 9\n  tried other (embedded)\n  install one of these, or set \
                     CRESSET_NPU_VERSION=any to go on at your own risk"
                )
            );
        }
        init(claiming("9.1.0")).unwrap();
        assert_eq!(info().unwrap().version, "CANN 9.1.0");
    });
}

#[test]
fn a_version_that_is_not_known_can_be_allowed() {
    let variables = [("CRESSET_NPU_VERSION", "any")];
    alone("library::a_version_that_is_not_known_can_be_allowed", &variables, || {
        init(claiming("10.2.3")).unwrap();
        assert_eq!(info().unwrap().version, "CANN 10.2.3");
    });
}

#[test]
fn an_unknown_choice_is_refused() {
    alone("library::an_unknown_choice_is_refused", &[("CRESSET_NPU", "gpu")], || {
        assert_eq!(refused(Library::installed()), "CRESSET_NPU=gpu: expected sim, hardware or auto");
    });
}

/// The simulator as the shared library that foreign programs load.
pub(crate) fn shared_library() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its program");
    program.with_file_name("libcresset_npu_sim_library.so")
}

/// A directory like that of release 9, with the simulator under all of its names.
pub(crate) fn toolkit(name: &str) -> PathBuf {
    toolkit_of(
        name,
        &["libascendcl.so", "libnnopbase.so", "libopapi_math.so", "libopapi_nn.so", "libmspti.so"],
    )
}

fn toolkit_of(name: &str, libraries: &[&str]) -> PathBuf {
    let home = std::env::temp_dir().join(format!("cresset-npu-{name}-{}", std::process::id()));
    std::fs::create_dir_all(home.join("lib64")).expect("temporary files can be made");
    for name in libraries {
        std::os::unix::fs::symlink(shared_library(), home.join("lib64").join(name)).expect("a new name");
    }
    home
}

#[test]
fn a_shared_library_is_found_in_a_toolkit() {
    let home = toolkit("found");
    let variables = [("ASCEND_HOME_PATH", home.to_str().expect("plain text")), ("CRESSET_NPU", "hardware")];
    alone("library::a_shared_library_is_found_in_a_toolkit", &variables, || {
        init(Library::installed()).unwrap();
        let info = info().unwrap();
        assert!(!info.is_embedded && info.tried.is_empty(), "{info}");
        assert!(info.library.contains("/lib64/libascendcl.so, "), "{info}");
        assert!(info.library.contains("/lib64/libopapi_math.so, "), "{info}");
        let x = Tensor::new([1.0f32, 2.0]).unwrap().to(cresset_npu::device(0)).unwrap();
        assert_eq!(x.add(&x).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0]);
    });
    std::fs::remove_dir_all(home).expect("it was made above");
}

#[test]
fn a_shared_library_is_found_on_the_loaders_path() {
    let home = toolkit_of("path", &["libascendcl.so", "libopapi.so", "libopapi_extra.so"]);
    let path = home.join("lib64").to_str().expect("plain text").to_owned();
    let variables =
        [("LD_LIBRARY_PATH", path.as_str()), ("ASCEND_HOME_PATH", ""), ("CRESSET_NPU", "hardware")];
    alone("library::a_shared_library_is_found_on_the_loaders_path", &variables, || {
        init(Library::installed()).unwrap();
        let library = info().unwrap().library;
        let names: Vec<&str> = library.split(", ").map(|path| path.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["libascendcl.so", "libopapi_extra.so", "libopapi.so"]);
    });
    std::fs::remove_dir_all(home).expect("it was made above");
}

#[test]
fn names_of_release_8_are_found() {
    let names = ["libascendcl.so", "libnnopbase.so", "libaclnn_math.so", "libaclnn_ops_infer.so"];
    let home = toolkit_of("older", &names);
    let variables = [("ASCEND_HOME_PATH", home.to_str().expect("plain text"))];
    alone("library::names_of_release_8_are_found", &variables, || {
        init(Library::installed()).unwrap();
        let library = info().unwrap().library;
        assert!(
            library.contains("libaclnn_math.so") && library.contains("libaclnn_ops_infer.so"),
            "{library}"
        );
    });
    std::fs::remove_dir_all(home).expect("it was made above");
}

#[test]
fn what_is_in_use_is_visible() {
    npu();
    let info = info().unwrap();
    assert!(info.is_embedded && is_available());
    assert_eq!(info.library, "cresset-npu-sim (embedded)");
    assert!(info.soc.contains("simulated"), "{info}");
    assert_eq!((info.devices, info.memory.len()), (1, 1));
    assert!(info.to_string().contains("\nchip     Ascend910B3 (simulated)\n"), "{info}");
}
