//! Where downloads are kept, and how they come there.

use crate::Result;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `CRESSET_CACHE`, or the user's usual place for caches.
pub(crate) fn folder(name: &str) -> Result<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("CRESSET_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|base| base.join("cresset")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/cresset")))
        .ok_or("set CRESSET_CACHE to a folder for downloads")?;
    let folder = base.join(name);
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    Ok(folder)
}

/// The headers in the wheel of `torch_npu`, downloaded if they are not there yet.
///
/// `Ok(None)` with a line on the terminal if the registry does not answer.
pub(crate) fn headers(version: &str) -> Result<Option<PathBuf>> {
    let folder = folder("headers")?.join(version);
    let include = folder.join("torch_npu/include/third_party");
    if include.is_dir() {
        return Ok(Some(include));
    }
    let wheels = folder.join("wheel");
    let wanted = format!("torch_npu=={version}");
    let download = Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--retries", "1", "--timeout", "20"])
        .args(["--only-binary=:all:", "--python-version", "311", "--platform", "manylinux_2_28_x86_64"])
        .arg("--dest")
        .arg(&wheels)
        .arg(&wanted)
        .output();
    match download {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().last().unwrap_or("pip said nothing");
            println!("headers not compared: the package registry did not give {wanted}: {last}");
            return Ok(None);
        }
        Err(error) => {
            println!("headers not compared: cannot run python3, which downloads {wanted}: {error}");
            return Ok(None);
        }
    }
    let wheel = only_file(&wheels)?;
    // The folder appears whole or not at all.
    let partial = folder.join("partial");
    let script = "import sys, zipfile\n\
        wheel = zipfile.ZipFile(sys.argv[1])\n\
        names = [name for name in wheel.namelist() if name.startswith('torch_npu/include/third_party/')]\n\
        wheel.extractall(sys.argv[2], names)";
    run(Command::new("python3").args(["-c", script]).arg(&wheel).arg(&partial))?;
    fs::rename(partial.join("torch_npu"), folder.join("torch_npu"))?;
    fs::remove_dir_all(&wheels)?;
    Ok(Some(include))
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let first = fs::read_dir(folder)?.next().ok_or("pip downloaded nothing")??;
    Ok(first.path())
}

/// Runs a command to its end; an error if it fails.
pub(crate) fn run(command: &mut Command) -> Result {
    let status = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !status.success() {
        return Err(format!("failed with {status}: {command:?}").into());
    }
    Ok(())
}
