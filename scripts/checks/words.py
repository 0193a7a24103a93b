"""Retired words: names that only their authors understood do not come back.

Searched for as `git grep -w` does, in what is tracked. Design notes say what was called how at
their time, and this file has to name the words; both are left out.
"""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEFT_OUT = (":!docs/design", ":!scripts/checks/words.py", ":!Cargo.lock")

# What was written: what is said.
RETIRED = {
    "Crew": "worker loads",
    "crew": "worker loads",
    "Seat": "connection slot",
    "seat": "connection slot",
    "Desk": "worker context",
    "desk": "worker context",
    "Place": "compiled location",
    "Runtime": "active configuration",
    "InForce": "configuration handle",
    "in_force": "configuration handle",
    "MayWait": "ready or pending",
    "Begun": "upstream request",
    "Settled": "leader's outcome",
    "Asking": "upstream request",
    "Led": "leader's outcome",
    "Patience": "deadline",
    "patience": "deadline",
    "Surplus": "excess data",
    "surplus": "excess data",
    "BrokenOff": "truncated",
    "farewell": "lingering close",
    "understand": "validate",
}
# The word in its meaning in the field, as a pattern: the reason.
FIELD_MEANINGS = {
    r"tokio::runtime::Runtime\b": "a type of tokio",
    r"\bmust-understand\b": "a directive of Cache-Control (RFC 9111 §5.2.2.3)",
}
# Names of tests that say nothing of a feature.
RETIRED_TESTS = ("around", "stacks", "copies", "lies")


def checks(_binary):
    return [
        ("retired_words_do_not_come_back", retired_words_do_not_come_back),
        ("tests_are_named_for_features", tests_are_named_for_features),
    ]


def retired_words_do_not_come_back():
    arguments = [argument for word in RETIRED for argument in ("-e", word)]
    found = []
    for line in git("grep", "-n", "-I", "-w", *arguments, "--", ".", *LEFT_OUT):
        path, number, text = line.split(":", 2)
        for pattern in FIELD_MEANINGS:
            text = re.sub(pattern, "", text)
        found += [f"{path}:{number}: {word}, say: {say}" for word, say in RETIRED.items() if re.search(rf"\b{word}\b", text)]
    assert not found, "; ".join(found)


def tests_are_named_for_features():
    found = []
    for path in git("ls-files", "*.rs"):
        stems = [part.removesuffix(".rs") for part in path.split("/")]
        if "tests" in stems or "test" in stems:
            found += [path for stem in stems if stem in RETIRED_TESTS]
    assert not found, f"named for no feature: {', '.join(found)}"


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    return done.stdout.splitlines()
