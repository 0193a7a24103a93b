"""Words: comments are plain English, and the name of a type is a noun.

Idioms are counted in comment lines of Rust: in rustls, hyper, h2, quinn-proto and tokio 0 to 0.8 of
1,000 have one. A type that is named by one bare participle or question (`Found`) says nothing of
its domain (`DnsAnswer`).
"""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

IDIOM = re.compile(r"\b(?:somebody|nobody|whoever|so many|(?:is|are) (?:to be|none))\b", re.IGNORECASE)
# Of 1,000 comment lines in all crates that are not named below.
MOST_IDIOMS = 5
# Crates that are not rewritten yet, and what was measured on 2026-11-23. These bounds only fall; a
# crate that has at most MOST_IDIOMS leaves the list.
MOST_IDIOMS_IN = {}

# Beside all words that end in -ed.
BARE_NAMES = set("""
    About Accepts Alone Answer Answering Answers Around Ask Asking Behind Begun Borne Broken Built Choose Did Does
    Door Find Found Gathering Given Gone Held Here Holds How Informing Inside Is Kept Known Leading Led Looking Looks
    Lost Made Making Met Nearly Noting Read Running Said Says Searching Seen Sending Sent Serving Shown Spent Split
    Starting Swept Taken Told Understood Waiting What When Where Which Who Why Within Would Writes Written
""".split())
# Not a participle, or the word of a standard.
GOOD_NAMES = {
    "Memcached": "the name of a program",
    "Split": "a noun: the two parts of a hit ratio",
}
# Types that are not renamed yet, and how many have the name: `server`, `mayfly`, `http2`, `http3`,
# `load-test`, and three of `testkit` that the tests of `mayfly` use. These numbers only fall.
BARE_TYPES = {
    "Answer": 3, "Answering": 2, "Asked": 3, "Awaited": 1, "Choose": 1, "Door": 2, "Expected": 1, "Fetched": 1,
    "Gathered": 1, "Given": 1, "Handled": 1, "Held": 1, "Informing": 1, "Located": 1, "Lost": 1,
    "Moved": 1, "Named": 1, "Noting": 1, "Offered": 1, "Parsed": 1, "Received": 1, "Said": 1, "Shared": 2,
    "Shown": 1, "Spooled": 1, "Stored": 1, "Tracked": 1, "Truncated": 1, "Unregistered": 1, "Upgraded": 1,
    "Wanted": 1, "Written": 1,
}

# Names of tests that say nothing of a feature.
RETIRED_TESTS = ("around", "stacks", "copies", "lies")


def checks(_binary):
    return [
        ("comments_have_few_idioms", comments_have_few_idioms),
        ("types_are_named_by_nouns", types_are_named_by_nouns),
        ("tests_are_named_for_features", tests_are_named_for_features),
    ]


def comments_have_few_idioms():
    lines, idioms = {}, {}
    for path, text in sources():
        crate = path.split("/")[1] if path.startswith("crates/") else path.split("/")[0]
        group = crate if crate in MOST_IDIOMS_IN else "all other crates"
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("//"):
                lines[group] = lines.get(group, 0) + 1
                if IDIOM.search(line):
                    idioms.setdefault(group, []).append(f"{path}:{number}")
    found = [
        f"{group}: {1000 * len(places) / lines[group]:.1f} of 1,000 comment lines, at most "
        f"{MOST_IDIOMS_IN.get(group, MOST_IDIOMS)}, among them {', '.join(places[-5:])}"
        for group, places in idioms.items()
        if 1000 * len(places) > MOST_IDIOMS_IN.get(group, MOST_IDIOMS) * lines[group]
    ]
    assert not found, "somebody, nobody, whoever, so many, is to be, is none: " + "; ".join(found)


def types_are_named_by_nouns():
    places = {}
    for path, text in sources():
        for name in re.findall(r"^\s*(?:pub(?:\([a-z: ]+\))? +)?(?:struct|enum|trait|type) +([A-Z]\w*)", text, re.MULTILINE):
            if (name in BARE_NAMES or re.fullmatch("[A-Z][a-z]+ed", name)) and name not in GOOD_NAMES:
                places.setdefault(name, []).append(path)
    found = [f"{name}: {', '.join(paths)}" for name, paths in places.items() if len(paths) > BARE_TYPES.get(name, 0)]
    assert not found, "a type is a noun with its domain: " + "; ".join(found)
    gone = [name for name in BARE_TYPES if name not in places]
    assert not gone, f"renamed, so take them out of BARE_TYPES: {', '.join(gone)}"


def tests_are_named_for_features():
    found = []
    for path in git("ls-files", "*.rs"):
        stems = [part.removesuffix(".rs") for part in path.split("/")]
        if "tests" in stems or "test" in stems:
            found += [path for stem in stems if stem in RETIRED_TESTS]
    assert not found, f"named for no feature: {', '.join(found)}"


def sources():
    for path in git("ls-files", "*.rs"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            yield path, file.read()


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    return done.stdout.splitlines()
