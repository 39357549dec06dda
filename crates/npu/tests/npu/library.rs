//! Which library is loaded, and what is said when none is.

use crate::support::{alone, npu};
use cresset_npu::{Library, info, init, is_available};
use cresset_tensor::Tensor;
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
fn an_unknown_choice_is_refused() {
    alone("library::an_unknown_choice_is_refused", &[("CRESSET_NPU", "gpu")], || {
        assert_eq!(refused(Library::installed()), "CRESSET_NPU=gpu: expected sim, hardware or auto");
    });
}

/// The simulator as the shared library that foreign programs load.
pub(crate) fn shared_library() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its program");
    program.with_file_name("libcresset_npu_sim.so")
}

/// A directory like the vendor's, with the simulator under all of its names.
pub(crate) fn toolkit(name: &str) -> PathBuf {
    let home = std::env::temp_dir().join(format!("cresset-npu-{name}-{}", std::process::id()));
    std::fs::create_dir_all(home.join("lib64")).expect("temporary files can be made");
    for name in ["libascendcl.so", "libnnopbase.so", "libopapi_math.so", "libopapi_nn.so", "libmspti.so"] {
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
fn what_is_in_use_is_visible() {
    npu();
    let info = info().unwrap();
    assert!(info.is_embedded && is_available());
    assert_eq!(info.library, "cresset-npu-sim (embedded)");
    assert!(info.soc.contains("simulated"), "{info}");
    assert_eq!((info.devices, info.memory.len()), (1, 1));
    assert!(info.to_string().contains("\nchip     Ascend910B3 (simulated)\n"), "{info}");
}
