"""Structs: at most fifteen fields, and two booleans in `server` and the crates that its code moved to.

More is several values that wait for their names. An exception has its reason above the struct, in a
comment line that begins with `// Large:`.
"""

import glob
import itertools
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = (("crates", "*"), ("bench", "tools"))
MAX_FIELDS = 15
# The booleans of other crates are flags of a protocol, options of a command line, or directives that are on or off.
OF_FEW_BOOLEANS = (
    "server", "basic-auth", "cache-bus", "cache-decision", "clock", "decimal", "live-state", "recoding", "server-base",
    "site-files", "transport", "transport-settings", "upstream", "upstream-exchange", "upstream-fetch",
)
MAX_BOOLEANS = 2

STRUCT = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?struct (\w+)[^;{(]*\{\n(.*?)^\1\}", re.DOTALL | re.MULTILINE)
REASON = re.compile(r"^ *// Large: \w+")


def checks(_binary):
    return [
        ("structs_have_at_most_fifteen_fields_and_two_booleans", structs_are_small),
        ("crates_of_few_booleans_are_there", crates_are_there),
        ("exceptions_are_of_large_structs", exceptions_are_needed),
    ]


def crates_are_there():
    gone = [crate for crate in OF_FEW_BOOLEANS if not os.path.isdir(os.path.join(ROOT, "crates", crate, "src"))]
    assert not gone, f"no such crate: {', '.join(gone)}"


def structs_are_small():
    found = [f"{path}: {name} has {said}" for path, name, said, is_argued in structs() if said and not is_argued]
    assert not found, "; ".join(found)


def exceptions_are_needed():
    found = [f"{path}: {name}" for path, name, said, is_argued in structs() if is_argued and not said]
    assert not found, f"small by now: {', '.join(found)}"


def structs():
    """Path, name, what is too large of it, and whether a comment argues for it."""
    paths = (glob.glob(os.path.join(ROOT, *folder, "src", "**", "*.rs"), recursive=True) for folder in FOLDERS)
    for path in sorted(itertools.chain.from_iterable(paths)):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for match in STRUCT.finditer(text):
            field = re.compile(rf"^{match[1]}    (?:pub(?:\([^)]*\))? )?\w+: (.*)", re.MULTILINE)
            types = [kind.rstrip(",") for kind in field.findall(match[3])]
            counts = [(len(types), MAX_FIELDS, "fields")]
            if os.path.relpath(path, ROOT).split(os.sep)[1] in OF_FEW_BOOLEANS:
                counts.append((types.count("bool"), MAX_BOOLEANS, "booleans"))
            said = " and ".join(f"{count} {what}" for count, most, what in counts if count > most)
            yield os.path.relpath(path, ROOT), match[2], said, is_argued(text[: match.start()])


def is_argued(before):
    """Does a line of the comments and attributes that end here give a reason?"""
    for line in reversed(before.splitlines()):
        if REASON.match(line):
            return True
        if not re.match(r"\s*(//|#\[)", line):
            return False
    return False
