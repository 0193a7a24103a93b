#!/usr/bin/env python3
"""How many planted faults do the tests of a crate find?

Faults are planted into a copy of the tree: a condition is negated, a part of it is left out, a
bound moves by one, a statement is not executed. All of a crate are compiled at once, each behind a
question to the environment, and the crate's tests run once for each. Run by hand: it takes one
build and some minutes for each crate.

    scripts/mutations/run.py [--count 25] [--seed 1] cache-decision http-cache http2 shared-request
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts/checks"))

import imports  # noqa: E402

# Builds of one crate: what the compiler refuses is taken back each time, and replaced.
MAX_BUILDS = 8
# A fault may make an endless loop: so many times as long as without one, and this on top.
SLOWER, PATIENCE_S = 5, 20

QUESTION = """
/// Is this the fault that this run is about?
pub(crate) fn planted_fault(number: u32) -> bool {
    static FAULT: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    let fault = FAULT.get_or_init(|| std::env::var("PLANTED_FAULT").ok()?.parse().ok());
    *fault == Some(number)
}
"""

# What a line looks like, and what becomes of it where `FAULT` is true.
COMPARISON = r"(?P<a>[\w.:()]+) (?P<op><=?|>=?) (?P<b>[\w.:()]+)"
TAIL, STATEMENT = "({it}) != FAULT", "if !FAULT {{ {it} }}"
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
KINDS = (
    ("negated", re.compile(r"^(?P<before>\s*(?:\} else )?if )(?P<it>(?!let\b).+)(?P<after> \{)$"), "({it}) != FAULT"),
    ("negated", re.compile(r"^(?P<before>\s*[^=]+ if )(?P<it>(?!let\b)[^=]+)(?P<after> => .*)$"), "({it}) != FAULT"),
    ("left out", re.compile(r"^(?P<before>\s*&& )(?P<it>(?!let\b)[^{]+?)(?P<after>;?)$"), "(({it}) || FAULT)"),
    ("left out", re.compile(r"^(?P<before>\s*\|\| )(?P<it>(?!let\b)[^{]+?)(?P<after>;?)$"), "(({it}) && !FAULT)"),
    (
        "moved by one",
        re.compile(r"^(?P<before>\s*(?:\} else )?(?:if |&& |\|\| ))(?P<it>" + COMPARISON + r")(?P<after>(?: \{)?)$"),
        "(if FAULT {{ {a} {other} {b} }} else {{ {it} }})",
    ),
    ("negated", re.compile(r"^(?P<before>\s+)(?P<it>matches!\(.*\)|\w.* (?:[=!]=|[<>]=?) [^;{=]*[^;{,=])(?P<after>)$"), TAIL),
    ("left out", re.compile(r"^(?P<before>\s+)(?P<it>[a-z_][\w.]*(?:\.\w+\(.*\)| [-+|&]?= .+);)(?P<after>)$"), STATEMENT),
)
# They begin no statement that could be left out.
KEYWORDS = re.compile(r"\s*(?:let|return|use|const|static|pub|break|continue|type|debug_assert\w*|assert\w*|fn)\b")


class Fault:
    def __init__(self, number, path, line, kind, text):
        self.number, self.path, self.line, self.kind, self.text = number, path, line, kind, text

    def __str__(self):
        return f"{self.path}:{self.line + 1} {self.kind}: {self.text.strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crates", nargs="+")
    parser.add_argument("--count", type=int, default=25, help="faults for each crate")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    planted = found = 0
    with tempfile.TemporaryDirectory(prefix="mayfly-mutations-") as tree:
        copy(tree)
        for crate in args.crates:
            faults, missed = examine(tree, crate, args.count, random.Random(args.seed))
            planted, found = planted + len(faults), found + len(faults) - len(missed)
            print(f"{crate}: {len(faults) - len(missed)} of {len(faults)} found", flush=True)
            for fault in missed:
                print(f"  not found: {fault}", flush=True)
    print(f"{found} of {planted} planted faults were found")


def copy(tree):
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in done.stdout.splitlines():
        os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, name), os.path.join(tree, name))


def examine(tree, crate, count, chance):
    source = os.path.join(tree, "crates", crate, "src")
    paths = sorted(set(imports.Crate(crate).files.values()) - {"fuzz.rs"})
    texts = {path: read(source, path) for path in paths}
    candidates = [it for path, lines in texts.items() for it in candidates_of(path, lines)]
    chance.shuffle(candidates)
    faults, number = [], 0
    for _ in range(MAX_BUILDS):
        while len(faults) < count and candidates:
            path, line, kind, changed = candidates.pop()
            if all((fault.path, fault.line) != (path, line) for fault in faults):
                number += 1
                faults.append(Fault(number, path, line, kind, texts[path][line]))
                faults[-1].changed = changed.replace("FAULT", f"crate::planted_fault({number})")
        write(source, texts, faults)
        programs, refused = build(tree, crate)
        if programs:
            return faults, [fault for fault in faults if not is_found(tree, crate, programs, fault)]
        before = len(faults)
        faults = [it for it in faults if not any(it.path == path and abs(it.line - line) <= 1 for path, line in refused)]
        assert len(faults) < before, f"{crate} cannot be built: {refused}"
    raise SystemExit(f"{crate}: the compiler refuses too many faults")


def candidates_of(path, lines):
    """Path, line, kind and the changed line of what could be planted outside of tests."""
    for number, line in enumerate(lines):
        if line.startswith("#[cfg(test)]") and number + 1 < len(lines) and "mod " in lines[number + 1]:
            return
        for kind, pattern, changed in KINDS:
            match = pattern.match(line)
            if not match or not is_whole(match["it"]) or " let " in line or line.lstrip().startswith("//"):
                continue
            if changed in (TAIL, STATEMENT) and (KEYWORDS.match(line) or not ends_a_statement(lines[number - 1])):
                continue
            parts = match.groupdict()
            parts["other"] = OTHER.get(parts.get("op"))
            yield path, number, kind, parts["before"] + changed.format(**parts) + parts["after"]


def is_whole(text):
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}")) and "//" not in text and "|" not in text.replace("||", "")


def ends_a_statement(line):
    return not line.strip() or line.strip().startswith("//") or line.rstrip().endswith((";", "{", "}"))


def read(source, path):
    with open(os.path.join(source, path), encoding="utf-8") as file:
        return file.read().split("\n")


def with_errors(source, errors):
    """The lines of files, by their paths, with all errors: name, path, what is there, and what stands there instead."""
    texts = {}
    for number, (name, path, old, new) in enumerate(errors, 1):
        text = "\n".join(texts.get(path) or read(source, path))
        assert text.count(old) == 1, f"{name}: {path} has the text {text.count(old)} times"
        texts[path] = text.replace(old, new.replace("FAULT", f"crate::planted_fault({number})")).split("\n")
    return texts


def write(source, texts, faults):
    for path, lines in texts.items():
        lines = list(lines)
        for fault in faults:
            if fault.path == path:
                lines[fault.line] = fault.changed
        text = "\n".join(lines) + (QUESTION if path == "lib.rs" else "")
        with open(os.path.join(source, path), "w", encoding="utf-8") as file:
            file.write(text)


def build(tree, crate):
    """The crate's test programs, or what the compiler refuses: files and lines."""
    command = ["cargo", "test", "-p", crate, "--no-run", "--locked", "--message-format=json"]
    # A folder of its own: cargo would take what was built of an error for fresh, and the server with it for the one that
    # people try.
    environment = {"CARGO_TARGET_DIR": os.path.join(ROOT, "target", "mutations"), **os.environ}
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, env=environment)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode == 0:
        return [it["executable"] for it in messages if it.get("executable") and it["profile"]["test"]], []
    refused = set()
    for message in messages:
        if message["reason"] == "compiler-message" and message["message"]["level"] == "error":
            for span in message["message"]["spans"]:
                refused.add((span["file_name"].split("/src/", 1)[-1], span["line_start"] - 1))
    assert refused, done.stderr
    return [], refused


def is_found(tree, crate, programs, fault):
    return any(fails(tree, crate, program, fault.number) for program in programs)


# Seconds of each program without a fault.
USUAL = {}


def fails(tree, crate, program, number):
    if program not in USUAL:
        began = time.monotonic()
        done = run(tree, crate, program, 0, 3600)
        assert done == 0, f"{program} fails without a fault"
        USUAL[program] = time.monotonic() - began
    return run(tree, crate, program, number, SLOWER * USUAL[program] + PATIENCE_S) != 0


def run(tree, crate, program, number, seconds):
    environment = {**os.environ, "PLANTED_FAULT": str(number)}
    folder = os.path.join(tree, "crates", crate)
    try:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.run([program, "-q"], cwd=folder, env=environment, timeout=seconds, **quiet).returncode
    except subprocess.TimeoutExpired:
        return -1


if __name__ == "__main__":
    main()
