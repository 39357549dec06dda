//! Links the program small, where the linker is the one that rustc brings.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    if !is_own_linker() {
        return;
    }
    // Functions that came out the same are there once. Nothing compares their addresses.
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    if has_packed_relocations() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the linker is rustc's own, LLD: others may not know its options.
fn is_own_linker() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu")
        && !is_set("RUSTC_LINKER")
        && !is_set("CARGO_ENCODED_RUSTFLAGS")
}

/// Whether this system's loader knows addresses as bit maps, which glibc does since 2.36; they take a
/// fortieth of the room.
fn has_packed_relocations() -> bool {
    let Ok(told) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let told = String::from_utf8_lossy(&told.stdout);
    let version = told.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    let Some((major, minor)) = version else { return false };
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    (number(major), number(minor)) >= (2, 36) && env::var("HOST").ok() == env::var("TARGET").ok()
}
