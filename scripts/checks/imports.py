"""Which files of a crate import which: circles are small, and no floor of `server` looks up.

Counted are `use` and `pub use` lines and paths that begin with `crate`, `super` or `self`, outside
of tests. A name that a parent module passes on counts for the file that defines it.
"""

import os
import re
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARCHITECTURE = os.path.join(ROOT, "ARCHITECTURE.md")

# As many as a reader can hold at once. Each circle has a sentence in ARCHITECTURE.md.
MAX_FILES_IN_A_CIRCLE = 8

# The floors of crates/server/src from below to above, as ARCHITECTURE.md draws them.
FLOORS = (
    "exchange log route respond access content pipeline service warming explain worker compose"
).split()
SAME_FLOOR = {"background": "worker", "worker_loads": "worker"}
# File and what it takes from above: the reason.
ALLOWED_UP = {
    ("service", "worker"): "what answers a transport is a method of what a worker's threads share",
}

# The two tables of ARCHITECTURE.md that are made of this. `MAYFLY_BLESS=1` writes them anew; a
# circle that is new has no sentence then, which fails until it has one.

CIRCLES_BEGIN = "| circle | files | why |\n| --- | --- | --- |\n"
CRATES_BEGIN = "| crate | what it is for | never | imports |\n| --- | --- | --- | --- |\n"


def checks(_binary):
    return [
        ("circles_of_imports_have_at_most_eight_files", circles_are_small),
        ("circles_of_three_files_have_a_sentence_in_architecture", circles_have_a_sentence),
        ("floors_of_server_import_only_downwards", floors_import_downwards),
        ("crates_import_only_those_below_them_in_architecture", crates_import_only_those_below),
    ]


def circles_are_small():
    found = [
        f"{name}: {', '.join(sorted(circle))}"
        for name, circle in circles_of_crates()
        if len(circle) > MAX_FILES_IN_A_CIRCLE
    ]
    assert not found, "more than eight files import each other: " + "; ".join(found)


def floors_import_downwards():
    crate, found = Crate("server"), []
    for file, imported in sorted(crate.imports.items()):
        for other in sorted(imported):
            above, below = floor(file), floor(other)
            # The crate's root only names the modules.
            if "lib" in (above, below) or (above, below) in ALLOWED_UP:
                continue
            for name in (above, below):
                assert name in FLOORS, f"{name} is no floor of ARCHITECTURE.md and of {__name__}.py"
            if FLOORS.index(below) > FLOORS.index(above):
                found.append(f"{file} imports {other}")
    assert not found, "floors that look up: " + "; ".join(found)


def floor(file):
    name = file.split("/")[0].removesuffix(".rs")
    return SAME_FLOOR.get(name, name)


class Crate:
    """The files of a crate's `src` and their imports."""

    def __init__(self, name):
        self.folder = os.path.join(ROOT, "crates", name, "src")
        self.files = {}  # module path as a tuple: file
        for folder, _, names in os.walk(self.folder):
            for file in names:
                path = os.path.relpath(os.path.join(folder, file), self.folder)
                if file.endswith(".rs"):
                    self.files[module_of(path)] = path
        for module in list(self.modules_for_tests()):
            for inner in [inner for inner in self.files if inner[: len(module)] == module]:
                del self.files[inner]
        self.texts = {file: text_without_tests(os.path.join(self.folder, file)) for file in self.files.values()}
        self.passed_on = {module: self.names_passed_on(module) for module in self.files}
        self.imports = {file: self.imports_of(module) for module, file in self.files.items()}

    def modules_for_tests(self):
        for module, path in self.files.items():
            with open(os.path.join(self.folder, path), encoding="utf-8") as file:
                for name in re.findall(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod (\w+);", file.read()):
                    yield module + (name,)

    def names_passed_on(self, module):
        """The names that a module takes from its children for others: name to path."""
        names = {}
        for use in re.findall(r"\bpub(?:\([^)]*\))? use ([^;]+);", self.texts[self.files[module]]):
            for path, alias in expanded(use):
                names[alias] = self.absolute(module, path)
        return names

    def imports_of(self, module):
        text = self.texts[self.files[module]]
        paths = []
        for use in re.findall(r"\buse ([^;]+);", text):
            paths += [path for path, _ in expanded(use)]
        text = re.sub(r"\buse [^;]+;", "", text)
        paths += [tuple(path.split("::")) for path in re.findall(r"\b(?:crate|super|self)(?:::\w+)+", text)]
        found = {self.defining_file(self.absolute(module, path)) for path in paths}
        return {file for file in found if file and file != self.files[module]}

    def absolute(self, module, path):
        """A path from the crate's root, or nothing for what comes from elsewhere."""
        if path[0] == "crate":
            return path[1:]
        if path[0] in ("super", "self"):
            here = module
            for step in path:
                if step == "super":
                    here = here[:-1]
                elif step != "self":
                    break
            return here + tuple(step for step in path if step not in ("super", "self"))
        return module + path if module + path[:1] in self.files else None

    def defining_file(self, path, depth=0):
        if path is None or depth > 8:
            return None
        for length in range(len(path), -1, -1):
            if path[:length] in self.files:
                break
        else:
            return None
        rest = path[length:]
        passed_on = self.passed_on[path[:length]].get(rest[0]) if rest else None
        if passed_on is not None and passed_on + rest[1:] != path:
            return self.defining_file(passed_on + rest[1:], depth + 1) or self.files[path[:length]]
        return self.files[path[:length]]

    def circles(self):
        """Sets of files, two at least, each of which reaches each other one."""
        reaches = {file: reached(self.imports, file) for file in self.imports}
        circles = {
            frozenset(other for other in reaches[file] if file in reaches[other])
            for file in reaches
            if file in reaches[file]
        }
        return [circle for circle in circles if len(circle) > 1]


def reached(imports, start):
    seen, todo = set(), list(imports[start])
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo += imports[file]
    return seen


def module_of(path):
    parts = path.removesuffix(".rs").split("/")
    return tuple(parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts)


def text_without_tests(path):
    """The code without comments and texts, and without what stands behind the tests' attribute."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r'b?r?"(?:\\.|[^"\\])*"', '""', text, flags=re.DOTALL)
    kept, start = [], 0
    for attribute in re.finditer(r"#\[cfg\((?:test|all\(test[^\]]*)\)\]", text):
        if attribute.start() >= start:
            kept.append(text[start : attribute.start()])
            start = end_of_item(text, attribute.end())
    return "".join(kept) + text[start:]


def end_of_item(text, start):
    """Behind the `;` or the closing brace of the item that begins at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0 and text[at] in ";}":
            return at + 1
    return len(text)


def expanded(use):
    """`a::{b, c::d as e}` is (a, b) as b and (a, c, d) as e."""
    use = " ".join(use.split())
    opening = use.find("{")
    if opening < 0:
        path, _, alias = use.strip().partition(" as ")
        steps = tuple(step for step in path.split("::") if step)
        if steps[-1] == "self":
            steps = steps[:-1]
        if steps and steps[-1] == "*":
            steps = steps[:-1]
        return [(steps, alias or steps[-1])] if steps else []
    found, depth, member = [], 0, ""
    for character in use[opening + 1 : use.rindex("}")] + ",":
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if member.strip():
                found += expanded(use[:opening] + member.strip())
            member = ""
        else:
            member += character
    return found


def circles_have_a_sentence():
    known = {}
    for folder, files, why in rows(CIRCLES_BEGIN):
        known[frozenset(named(files))] = (folder, why)
    lines, silent = [], []
    for name, circle in sorted(circles_of_crates(), key=lambda it: (-len(it[1]), it[0], sorted(it[1]))):
        if len(circle) < 3:
            continue
        where, files = within(name, circle)
        _, why = known.get(frozenset(files)) or nearest(known, where, files)
        lines.append(f"| `{where}` ({len(files)}) | {quoted(files)} | {why} |\n")
        if not why:
            silent.append(f"{where}: {quoted(files)}")
    assert_table(CIRCLES_BEGIN, lines)
    assert not silent, "circles without a sentence: " + "; ".join(silent)


def crates_import_only_those_below():
    uses = {name: dependencies(name) for name in crates()}
    table = rows(CRATES_BEGIN)
    order = {name: at for at, row in enumerate(table) for name in named(row[0])}
    assert set(order) == set(crates()), f"rows and crates differ: {sorted(set(order) ^ set(crates()))}"
    lines, upward = [], []
    for at, row in enumerate(table):
        names = named(row[0])
        used = sorted({other for name in names for other in uses[name]} - set(names))
        upward += [f"{row[0]} imports {other}, which stands above it" for other in used if order[other] < at]
        lines.append("| " + " | ".join(row[:3] + [quoted(used)]) + " |\n")
    assert not upward, "; ".join(upward)
    assert_table(CRATES_BEGIN, lines)


def circles_of_crates():
    return [(name, circle) for name in crates() for circle in Crate(name).circles()]


def within(name, circle):
    """The folder that holds a whole circle, and its files from there."""
    paths = sorted(file.removesuffix(".rs").removesuffix("/mod") for file in circle)
    folder = os.path.commonpath(paths)
    if folder in paths or len(paths) == 1:
        folder = os.path.dirname(folder)
    return os.path.join(name, folder).rstrip("/"), [os.path.relpath(path, folder or ".") for path in paths]


def nearest(known, where, files):
    """The row of the same folder that shares most files; a circle that grew keeps its sentence."""
    same = [(len(found & set(files)), row) for found, row in known.items() if row[0].split("`")[1] == where]
    shared, row = max(same, key=lambda it: it[0], default=(0, ("", "")))
    return row if shared else ("", "")


def crates():
    return sorted(os.listdir(os.path.join(ROOT, "crates")))


def dependencies(name):
    with open(os.path.join(ROOT, "crates", name, "Cargo.toml"), "rb") as file:
        manifest = tomllib.load(file)
    return set(manifest.get("dependencies", {})) & set(crates())


def rows(begin):
    table = architecture().split(begin)[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()]


def named(cell):
    return re.findall(r"`([^`]+)`", cell)


def quoted(names):
    return ", ".join(f"`{name}`" for name in names)


def architecture():
    with open(ARCHITECTURE, encoding="utf-8") as file:
        return file.read()


def assert_table(begin, lines):
    text = architecture()
    before, after = text.split(begin)
    new = before + begin + "".join(lines) + "\n" + after.split("\n\n", 1)[1]
    if os.environ.get("MAYFLY_BLESS"):
        with open(ARCHITECTURE, "w", encoding="utf-8") as file:
            file.write(new)
    assert new == architecture(), "ARCHITECTURE.md is not what is there: MAYFLY_BLESS=1 scripts/checks/run.py imports writes it"
