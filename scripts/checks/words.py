"""Words: comments are plain English, the name of a type is a noun, and that of a bound begins with MAX_ or MIN_.

Idioms are counted in comment lines of Rust: in rustls, hyper, h2, quinn-proto and tokio 0 to 0.8 of
1,000 have one. A type that is named by one bare participle or question (`Found`) says nothing of
its domain (`DnsAnswer`), and one with a verb (`LimitSays`) is half a sentence.
"""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

IDIOM = re.compile(r"\b(?:somebody|nobody|whoever|so many|(?:is|are) (?:to be|none))\b", re.IGNORECASE)
# Of 1,000 comment lines.
MAX_IDIOMS = 5

# Beside all words that end in -ed.
BARE_NAMES = set("""
    About Accepts Alone Answer Answering Answers Around Ask Asking Behind Begun Borne Broken Built Choose Did Does
    Door Find Found Gathering Given Gone Held Here Holds How Informing Inside Is Kept Kind Known Leading Led Looking
    Looks Lost Made Making Met Nearly Noting Read Running Said Says Searching Seen Sending Sent Serving Shown Spent Split
    Starting State Swept Taken Told Understood Waiting What When Where Which Who Why Within Would Writes Written
""".split())
# In the third person, as no noun ends.
VERB = re.compile("""
    (?:Accept|Allow|Appear|Apply|Appli|Arrive|Ask|Become|Begin|Belong|Bring|Choose|Come|Consist|Contain|Decide|Do|
    Earn|Exist|Expect|Find|Follow|Forbid|Forget|Get|Give|Go|Ha|Happen|Hear|Hold|I|Keep|Know|Learn|Let|Live|Lose|Make|
    Mean|Meet|Need|Offer|Own|Put|Read|Refuse|Remain|Remember|Say|See|Seem|Send|Serve|Speak|Stand|Stay|Take|Teach|Tell|
    Think|Throw|Try|Understand|Wait|Want|Write)e?s
""", re.VERBOSE)
# Not a participle, or the word of a standard.
GOOD_NAMES = {
    "Memcached": "the name of a program",
    "Split": "a noun: the two parts of a hit ratio",
}

# Names of tests that say nothing of a feature.
RETIRED_TESTS = ("around", "stacks", "copies", "lies")


def checks(_binary):
    return [
        ("comments_have_few_idioms", comments_have_few_idioms),
        ("types_are_named_by_nouns", types_are_named_by_nouns),
        ("bounds_are_named_alike", bounds_are_named_alike),
        ("tests_are_named_for_features", tests_are_named_for_features),
    ]


def comments_have_few_idioms():
    lines, found = 0, []
    for path, text in sources():
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("//"):
                lines += 1
                if IDIOM.search(line):
                    found.append(f"{path}:{number}")
    rate = 1000 * len(found) / lines
    assert rate <= MAX_IDIOMS, (
        f"somebody, nobody, whoever, so many, is to be, is none: {rate:.1f} of 1,000 comment lines, "
        f"at most {MAX_IDIOMS}: {', '.join(found)}"
    )


def types_are_named_by_nouns():
    found = [
        f"{name}: {path}"
        for path, text in sources()
        for name in re.findall(r"^\s*(?:pub(?:\([a-z: ]+\))? +)?(?:struct|enum|trait|type) +([A-Z]\w*)", text, re.MULTILINE)
        if name not in GOOD_NAMES
        and (name in BARE_NAMES or "Told" in words_of(name) or re.fullmatch("[A-Z][a-z]+ed", name) or any(map(VERB.fullmatch, words_of(name))))
    ]
    assert not found, "a type is a noun with its domain: " + "; ".join(found)


def bounds_are_named_alike():
    found = [
        f"{name}: {path}"
        for path, text in sources()
        for name in re.findall(r"\b(?:const|static) ((?:MOST|LEAST|FEWEST)_[A-Z0-9_]+|[A-Z0-9_]+_(?:MAX|MIN))\b", text)
    ]
    assert not found, "a bound begins with MAX_ or MIN_: " + "; ".join(found)


def words_of(name):
    return re.findall("[A-Z][a-z0-9]*", name)


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
