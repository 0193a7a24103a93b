"""The manifests: what the workspace says holds for each of its crates, and its version wherever one is written."""

import glob
import os
import re
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def checks(_binary):
    return [
        ("crates_take_the_minimum_rust_version_from_the_workspace", minimum_version_is_the_workspaces),
        ("what_a_newer_rust_brought_is_denied_in_every_crate", newer_rust_is_denied),
        ("version_of_the_workspace_is_that_of_crates_changelog_and_plugin", version_is_the_workspaces),
        ("directives_came_with_a_version_up_to_that_of_the_workspace", since_is_released),
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


def version():
    return load("Cargo.toml")["workspace"]["package"]["version"]


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def version_is_the_workspaces():
    own = [path for path, manifest in manifests() if manifest["package"].get("version") != {"workspace": True}]
    assert not own, f"a version of their own: {', '.join(own)}"
    written = {
        "CHANGELOG.md": re.search(r"^## (\S+)$", text("CHANGELOG.md"), re.MULTILINE),
        "php/wordpress/mayfly/mayfly.php": re.search(r"^ \* Version: (\S+)$", text("php/wordpress/mayfly/mayfly.php"), re.MULTILINE),
    }
    other = [f"{path} ({found and found[1]})" for path, found in written.items() if not found or found[1] != version()]
    assert not other, f"another version than {version()}: {', '.join(other)}"


def since_is_released():
    def numbers(dotted):
        return [int(number) for number in dotted.split(".")]

    since = set(re.findall(r"^- Since: (.*)$", text("docs/directives.md"), re.MULTILINE))
    assert since, "docs/directives.md says of no directive since when it is there"
    later = [it for it in since if numbers(it) > numbers(version())]
    assert not later, f"later than {version()}: {', '.join(sorted(later))}"
