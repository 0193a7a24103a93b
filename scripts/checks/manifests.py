"""The manifests: what the workspace says holds for each of its crates."""

import glob
import os
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def checks(_binary):
    return [
        ("crates_take_the_minimum_rust_version_from_the_workspace", minimum_version_is_the_workspaces),
        ("what_a_newer_rust_brought_is_denied_in_every_crate", newer_rust_is_denied),
    ]


def manifests():
    for path in glob.glob("crates/*/Cargo.toml", root_dir=ROOT) + ["bench/tools/Cargo.toml", "fuzz/Cargo.toml"]:
        yield path, load(path)


def load(path):
    with open(os.path.join(ROOT, path), "rb") as file:
        return tomllib.load(file)


def minimum_version_is_the_workspaces():
    other = [path for path, manifest in manifests() if manifest["package"].get("rust-version") != {"workspace": True}]
    assert not other, f"a rust-version of their own: {', '.join(other)}"
    assert "rust-version" in load("Cargo.toml")["workspace"]["package"]


def newer_rust_is_denied():
    shared = load("Cargo.toml")["workspace"]["lints"]
    without = []
    for path, manifest in manifests():
        lints = manifest.get("lints", {})
        if lints.get("workspace"):
            lints = shared
        if lints.get("clippy", {}).get("incompatible_msrv") != "deny":
            without.append(path)
    assert not without, f"clippy's incompatible_msrv is not denied: {', '.join(without)}"
