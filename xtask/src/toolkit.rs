//! A folder that programs for Ascend take for an installation of the toolkit.

use crate::{Result, cache};
use cresset_acl::signature::{FUNCTIONS, OPERATORS};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where to make it.
    folder: PathBuf,
    /// Build the simulated device with all optimisations.
    #[arg(long)]
    release: bool,
}

/// What programs load. One file under many names is loaded once, so all share one state.
const LIBRARIES: &[&str] = &[
    "libascendcl.so",
    "libacl_rt.so",
    "libnnopbase.so",
    "libopapi.so",
    "libmspti.so",
    "libms_tools_ext.so",
    "libmsprofiler.so",
    "libhccl.so",
    "libacl_op_compiler.so",
    "libacl_tdt_channel.so",
    "libge_runner.so",
    "libgraph.so",
    "libruntime.so",
];

pub(crate) fn run(options: &Options) -> Result {
    let library = build(options.release)?;
    make(&options.folder, &library)?;
    println!("source {}/set_env.sh", options.folder.display());
    Ok(())
}

/// Builds the shared library; gives its path.
pub(crate) fn build(release: bool) -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace has a root")?;
    let mut cargo = Command::new(env!("CARGO"));
    // With the root package, so that features are those of a build of everything, and nothing is built twice.
    cargo.current_dir(root).args(["build", "--quiet", "-p", "cresset", "-p", "cresset-npu-sim-library"]);
    if release {
        cargo.arg("--release");
    }
    cache::run(&mut cargo)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join(if release { "release" } else { "debug" }).join("libcresset_npu_sim_library.so"))
}

/// Makes the folder, or makes it anew.
pub(crate) fn make(folder: &Path, library: &Path) -> Result {
    let library = library.canonicalize().map_err(|error| format!("{}: {error}", library.display()))?;
    for inner in ["lib64", "runtime", "compiler", "opp"] {
        fs::create_dir_all(folder.join(inner))?;
    }
    for name in LIBRARIES {
        let link = folder.join("lib64").join(name);
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link)?;
        }
        symlink(&library, &link)?;
    }
    let lines = environment(&folder.canonicalize()?).map(|(name, value)| format!("export {name}={value}\n"));
    let script = format!("# Lets programs for Ascend find the simulated device.\n{}", lines.concat());
    Ok(fs::write(folder.join("set_env.sh"), script)?)
}

/// What programs must have in their environment to take `folder` for the toolkit.
pub(crate) fn environment(folder: &Path) -> [(&'static str, String); 4] {
    let home = folder.display();
    [
        ("ASCEND_HOME_PATH", format!("{home}")),
        ("ASCEND_OPP_PATH", format!("{home}/opp")),
        ("LD_LIBRARY_PATH", format!("{home}/lib64")),
        // Clients look the chip up by its name, and would not find one that says it is simulated.
        ("CRESSET_SIM_SOC", "Ascend910B3".into()),
    ]
}

/// Every function that the shared library must export.
pub(crate) fn functions() -> BTreeSet<String> {
    let plain = FUNCTIONS.iter().copied().flatten().map(|function| function.name.to_owned());
    let pairs = OPERATORS
        .iter()
        .copied()
        .flatten()
        .flat_map(|operator| [operator.name.to_owned(), format!("{}GetWorkspaceSize", operator.name)]);
    plain.chain(pairs).collect()
}
