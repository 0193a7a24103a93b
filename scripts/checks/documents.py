"""The documents: what they name is there.

A name is what stands between backquotes: a path of this repository, a `module::name`, or a
`TypeName` of two words. A design note that speaks of a renamed thing says what it is called now.
"""

import functools
import glob
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WALKS = (
    "A hit", "A miss", "A WebSocket", "A purge by tag", "A hit over HTTP/2 and TLS", "A page of fragments", "A reload",
)
MAX_STOPS = 12
# Crates of others that documents mention.
OTHERS = ("std", "tokio", "libc", "h2", "rustls")
# Words like a type's that are names of other programs.
FOREIGN_WORDS = ("CacheLookup", "FileDescriptorName", "ListenDatagram", "MemoryDenyWriteExecute")
DEFINITION = r"\b(?:fn|struct|enum|trait|type|const|static|mod|union|macro_rules!) +{}\b"


def checks(_binary):
    return [
        ("paths_in_documents_exist", paths_exist),
        ("links_in_documents_lead_somewhere", links_lead_somewhere),
        ("names_of_code_in_documents_exist", names_of_code_exist),
        ("types_in_documents_exist", types_exist),
        ("walks_have_at_most_twelve_stops_and_come_to_no_file_twice", walks_hold),
    ]


def documents():
    """Path and text of each, without blocks of code."""
    names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
    for folder in ("docs/**/*.md", "crates/**/LIFECYCLE.md"):
        names += sorted(glob.glob(folder, root_dir=ROOT, recursive=True))
    for path in names:
        yield path, without_code(read(path))


def quoted(text):
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def paths_exist():
    missing = []
    for document, text in documents():
        for name in quoted(text):
            path = re.match(r"[\w.*-]+(?:/[\w.*-]+)*/?", name)
            if path and path[0] == name.split(":")[0].split(" ")[0] and is_path(path[0]) and not is_there(document, path[0]):
                missing.append(f"{document}: {path[0]}")
    assert not missing, "; ".join(missing)


def is_path(name):
    """Of this repository, and not of a site or a system."""
    first, _, rest = name.partition("/")
    return name.endswith((".rs", ".py")) or (bool(rest) and first in top_folders())


def is_there(document, name):
    if subprocess.run(["git", "check-ignore", "--quiet", name], cwd=ROOT).returncode == 0:
        return True  # Made by a program that the document speaks of.
    name = re.sub(r"\b[A-Z]+(?=/)", "*", name)  # crates/NAME/tests/
    folders = ("", os.path.dirname(document), "crates", "crates/server/src")
    if any(glob.glob(os.path.join(ROOT, folder, name)) for folder in folders):
        return True
    # A file named without the folders above it.
    return any(path.endswith("/" + name) for path in tracked())


def links_lead_somewhere():
    missing = []
    # What is made of bench/page.md lies in docs/.
    for document in sorted(path for path in tracked() if path.endswith(".md") and path != "bench/page.md"):
        for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", without_code(read(document))):
            target = os.path.normpath(os.path.join(os.path.dirname(document), link)) if link else document
            if "://" in link or link.startswith("mailto:"):
                continue
            if not os.path.exists(os.path.join(ROOT, target)):
                missing.append(f"{document}: {link}")
            elif anchor and target.endswith(".md") and anchor not in anchors(target):
                missing.append(f"{document}: {link}#{anchor}")
    assert not missing, "; ".join(missing)


def without_code(text):
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


@functools.cache
def anchors(document):
    """The names that viewers of Markdown give to headings: words, joined by hyphens; a second one of a kind has a number."""
    names = []
    for heading in re.findall(r"^#+ (.+)$", without_code(read(document)), re.MULTILINE):
        heading = re.sub(r"\]\([^)]*\)", "", heading.replace("`", "")).lower()
        name = re.sub(r"[^\w -]", "", heading).replace(" ", "-")
        names.append(name if name not in names else f"{name}-{names.count(name)}")
    return {*names, *re.findall(r'<a (?:id|name)="([^"]+)"', read(document))}


def names_of_code_exist():
    missing = []
    for document, text in documents():
        for name in quoted(text):
            if re.fullmatch(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)+(\(\))?", name):
                steps = name.removesuffix("()").split("::")
                if steps[0] not in OTHERS and not is_defined(steps[-2], steps[-1]):
                    missing.append(f"{document}: {name}")
            found = re.fullmatch(r"([\w/.-]+\.rs)::?(\w[\w:]*)", name)
            if found and not any(defines(path, found[2]) for path in tracked() if ("/" + path).endswith("/" + found[1])):
                missing.append(f"{document}: {name}")
    assert not missing, "; ".join(missing)


def types_exist():
    words = {word for path in tracked() if path.endswith((".rs", ".py", ".php")) for word in re.findall(r"\w+", read(path))}
    missing = [
        f"{document}: {name}"
        for document, text in documents()
        for name in quoted(text)
        if re.fullmatch(r"[A-Z][a-z]+(?:[A-Z][a-z0-9]*)+", name) and name not in words and name not in FOREIGN_WORDS
    ]
    assert not missing, "; ".join(missing)


def is_defined(parent, name):
    """`name` in a module or crate `parent`, or with a type `parent`."""
    for path in tracked():
        if not path.endswith(".rs"):
            continue
        steps = path.removesuffix(".rs").replace("-", "_").split("/")
        if parent in steps and re.search(DEFINITION.format(name), read(path)):
            return True
        if parent[0].isupper() and re.search(rf"\b(?:struct|enum|trait|impl)\b[^;{{]*\b{parent}\b", read(path)):
            if re.search(DEFINITION.format(name), read(path)) or re.search(rf"^ +(?:pub )?{name}\b", read(path), re.MULTILINE):
                return True
    return False


def defines(path, name):
    """Does this file define `function` or `Type::function`?"""
    *parents, function = name.split("::")
    return bool(re.search(rf"\bfn +{function}\b", read(path))) and all(
        re.search(rf"\b{parent}\b", read(path)) for parent in parents
    )


def walks_hold():
    path = "docs/life-of-a-request.md"
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", read(path), re.MULTILINE | re.DOTALL))
    wrong = [f"no section {walk}" for walk in WALKS if walk not in sections]
    for walk in WALKS:
        stops = re.findall(r"^\d+\. (.*(?:\n   .*)*)", sections.get(walk, ""), re.MULTILINE)
        if not 1 <= len(stops) <= MAX_STOPS:
            wrong.append(f"{walk}: {len(stops)} stops")
        seen = set()
        for number, stop in enumerate(stops, 1):
            begins = re.match(r"`([\w/.-]+\.rs)`,\s+`([\w:]+)`", stop)
            if not begins:
                wrong.append(f"{walk}, {number}: does not begin with `file`, `function`")
                continue
            file, function = begins.groups()
            if file in seen:
                wrong.append(f"{walk}, {number}: {file} a second time")
            seen.add(file)
            if file not in tracked():
                wrong.append(f"{walk}, {number}: there is no {file}")
            elif not defines(file, function):
                wrong.append(f"{walk}, {number}: {file} has no {function}")
    assert not wrong, "; ".join(wrong)


@functools.cache
def tracked():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


@functools.cache
def top_folders():
    return {path.split("/")[0] for path in tracked() if "/" in path}


@functools.cache
def read(path):
    try:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise AssertionError(f"{path} is missing") from None
