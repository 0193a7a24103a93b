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
        ("examples_in_documentation_are_looked_for_where_there_are_some", examples_are_run),
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

    since = set(re.findall(r"[Ss]ince `([\d.]+)`", text("docs/directives.md")))
    assert since, "docs/directives.md says of no directive since when it is there"
    later = [it for it in since if numbers(it) > numbers(version())]
    assert not later, f"later than {version()}: {', '.join(sorted(later))}"


def examples_are_run():
    """Looking for them takes as long as compiling the crate: `doctest = false` says that it has none."""
    wrong = []
    for path, manifest in manifests():
        folder = os.path.dirname(os.path.join(ROOT, path))
        if os.path.exists(os.path.join(folder, "src/lib.rs")):
            says_none = manifest.get("lib", {}).get("doctest") is False
            has_some = any(map(has_example, glob.glob(os.path.join(folder, "src/**/*.rs"), recursive=True)))
            if has_some == says_none:
                wrong.append(f"{path}: {'has examples' if has_some else 'has no example'}, doctest is {not says_none}")
    assert not wrong, "; ".join(wrong)


def has_example(path):
    """Whether it has a block that rustdoc runs: one that names no other language, such as `text` or `json`."""
    with open(path) as file:
        fences = re.findall(r"^ *//[/!] *```(.*)$", file.read(), flags=re.MULTILINE)
    return any(not re.fullmatch(r"(?!rust)[a-z]+", language) for language in fences[::2])
