#!/usr/bin/env python3
"""Says what the programs are made of, from `cargo metadata` and the files of the crates.

    materials.py --target TRIPLE --notices FILE --sbom FILE

The notices are the licence texts of every crate that is linked into the programs, each text once with the crates that have
it. The bill of materials is CycloneDX 1.5. Neither names a time or a path, so that the same sources give the same bytes.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LICENCE_FILE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True)
    parser.add_argument("--notices", required=True)
    parser.add_argument("--sbom", required=True)
    args = parser.parse_args()
    metadata = json.loads(subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", args.target],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    program, linked, depends = linked_crates(metadata)
    foreign = [crate for crate in linked if crate["source"]]
    with open(args.notices, "w", encoding="utf-8") as file:
        file.write(notices(foreign))
    with open(args.sbom, "w", encoding="utf-8") as file:
        json.dump(bill(program, linked, depends), file, indent=1, sort_keys=True)
        file.write("\n")
    print(f"{len(foreign)} crates of others are linked into the programs")


def linked_crates(metadata):
    """The server's program, all crates that are linked into it and into the tools, and of which each is made, by their ids."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    program, tools = (next(it for it in packages.values() if it["name"] == name and not it["source"])
                      for name in ("mayfly", "mayfly-tools"))
    depends, waiting = {}, [program["id"], tools["id"]]
    while waiting:
        id = waiting.pop()
        if id in depends:
            continue
        # What only tests or build scripts use is not in the program.
        depends[id] = sorted(dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"]))
        waiting += depends[id]
    linked = sorted((packages[id] for id in depends), key=lambda it: (it["name"], it["version"]))
    return program, linked, depends


def notices(crates):
    texts = {}
    for crate in crates:
        for text in licence_texts(crate):
            texts.setdefault(text, []).append(f"{crate['name']} {crate['version']}")
    parts = ["Mayfly contains the work of others. These are their notices and licences.\n"]
    for text, of in sorted(texts.items(), key=lambda it: it[1]):
        parts.append("=" * 78 + "\n" + "".join(f"{name}\n" for name in of) + "-" * 78 + "\n" + text)
    return "\n".join(parts)


def licence_texts(crate):
    folder = os.path.dirname(crate["manifest_path"])
    names = sorted(name for name in os.listdir(folder) if LICENCE_FILE.match(name))
    if crate.get("license_file"):
        names.append(crate["license_file"])
    if crate["name"].endswith("-sys"):
        # The library in C that it brings along is one folder deeper.
        below = [it for it in sorted(os.listdir(folder)) if os.path.isdir(os.path.join(folder, it))]
        names += [f"{it}/{name}" for it in below for name in sorted(os.listdir(os.path.join(folder, it))) if LICENCE_FILE.match(name)]
    texts = []
    for name in dict.fromkeys(names):
        path = os.path.join(folder, name)
        paths = [path] if os.path.isfile(path) else [os.path.join(path, it) for it in sorted(os.listdir(path))] if os.path.isdir(path) else []
        for path in paths:
            with open(path, encoding="utf-8", errors="replace") as file:
                texts.append("\n".join(line.rstrip() for line in file.read().splitlines()).strip("\n") + "\n")
    if not texts:
        # The crate says which licence it has, and has no copy of it.
        authors = ", ".join(crate["authors"]) or "its authors"
        texts.append(f"{crate['name']} is under {crate['license']}. Copyright {authors}. {crate['repository'] or ''}\n")
    return texts


def reference(crate):
    return f"pkg:cargo/{crate['name']}@{crate['version']}"


def bill(program, linked, depends):
    with open(os.path.join(ROOT, "Cargo.lock"), "rb") as file:
        locked = file.read()
    sums = {(it["name"], it["version"]): it.get("checksum") for it in tomllib.loads(locked.decode())["package"]}
    by_id = {crate["id"]: crate for crate in linked}
    digest = hashlib.sha256(locked + program["version"].encode()).digest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}",
        "version": 1,
        "metadata": {"component": component(program, None) | {"type": "application"}},
        "components": [component(it, sums.get((it["name"], it["version"]))) for it in linked if it is not program],
        "dependencies": [
            {"ref": reference(by_id[id]), "dependsOn": sorted({reference(by_id[it]) for it in of})}
            for id, of in sorted(depends.items(), key=lambda it: reference(by_id[it[0]]))
        ],
    }


def component(crate, checksum):
    found = {"type": "library", "bom-ref": reference(crate), "name": crate["name"], "version": crate["version"]}
    if crate["source"]:
        found["purl"] = reference(crate)
    if crate["license"]:
        found["licenses"] = [{"expression": crate["license"].replace("/", " OR ")}]
    if crate["description"]:
        found["description"] = " ".join(crate["description"].split())
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if crate["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": crate["repository"]}]
    return found


if __name__ == "__main__":
    sys.exit(main())
