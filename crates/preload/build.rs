//! Builds the library that PHP loads (`learn-library`), whose bytes this crate carries.
//!
//! It is built with the same cargo and compiler, from the same lock file, without the network, for the
//! same kind of processor and for glibc, also where the program itself is for musl: a static program
//! starts the PHP of the distribution. Where Rust's library for that target is missing, nothing is carried.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "learn-library";
const PROFILE: &str = "preload";
/// The sources of the library, below the workspace.
const SOURCES: &[&str] = &[
    "crates/learn-library",
    "crates/learn-record",
    "crates/mysql-wire",
    "Cargo.toml",
];

fn main() {
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    for source in SOURCES {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(source).display()
        );
    }
    let carried = PathBuf::from(variable("OUT_DIR")).join("library.so");
    let target = format!(
        "{}-unknown-linux-gnu",
        variable("CARGO_CFG_TARGET_ARCH").display()
    );
    if has_standard_library(&target) {
        std::fs::copy(build(&workspace, &target), &carried).expect("the library is copied");
    } else {
        std::fs::write(&carried, b"").expect("a file is written");
    }
    println!("cargo::rustc-env=PRELOADED_LIBRARY={}", carried.display());
}

fn build(workspace: &Path, target: &str) -> PathBuf {
    let folder = PathBuf::from(variable("OUT_DIR")).join("target");
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args([
            "build",
            "--quiet",
            "--offline",
            "--locked",
            "--package",
            PACKAGE,
            "--profile",
            PROFILE,
        ])
        .args(["--target", target])
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&folder);
    // Settings made for the program do not hold for the library: profiles, wrappers, other targets. The linker of the
    // library's own target stays: for another kind of processor there is no other way to name it.
    let linker = format!(
        "CARGO_TARGET_{}_LINKER",
        target.to_uppercase().replace('-', "_")
    );
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text == linker {
            continue;
        }
        let is_of_program = ["CARGO_PROFILE_", "CARGO_TARGET_", "CARGO_BUILD_"]
            .iter()
            .any(|it| text.starts_with(it))
            || [
                "RUSTFLAGS",
                "CARGO_ENCODED_RUSTFLAGS",
                "RUSTC_WORKSPACE_WRAPPER",
                "RUSTDOCFLAGS",
            ]
            .contains(&&*text);
        if is_of_program {
            cargo.env_remove(&name);
        }
    }
    // But no path of this machine is in either.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let kept: Vec<_> = flags
        .split('\x1f')
        .filter(|it| it.starts_with("--remap-path-prefix"))
        .collect();
    if !kept.is_empty() {
        cargo.env("CARGO_ENCODED_RUSTFLAGS", kept.join("\x1f"));
    }
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "the library that PHP loads was not built");
    folder
        .join(target)
        .join(PROFILE)
        .join("liblearn_library.so")
}

fn has_standard_library(target: &str) -> bool {
    let sysroot = Command::new(variable("RUSTC"))
        .args(["--print", "sysroot"])
        .output()
        .expect("the compiler runs");
    let sysroot = String::from_utf8_lossy(&sysroot.stdout).trim().to_owned();
    Path::new(&sysroot)
        .join("lib/rustlib")
        .join(target)
        .join("lib")
        .is_dir()
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"))
}
