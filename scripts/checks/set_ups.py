"""The set-ups of examples/set-ups answer as the documentation of their applications says."""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conformance"))

import application_set_ups  # noqa: E402
from lib import subject  # noqa: E402


def checks(binary):
    answers = [
        (f"{name}_answers_as_its_documentation_says", functools.partial(answers_as_documented, binary, name))
        for name in application_set_ups.names()
    ]
    if subject.kind_of(binary) == "mayfly":
        answers.append(("check_finds_nothing_unsafe_in_any_set_up", functools.partial(nothing_is_unsafe, binary)))
    return [("each_set_up_has_a_table_and_a_row_in_the_overview", each_has_a_table), *answers]


def answers_as_documented(binary, name):
    with application_set_ups.surroundings([name]) as around:
        found, _ = application_set_ups.differences(binary, name, around)
    assert not found, "\n        ".join(found)


def nothing_is_unsafe(binary):
    names = application_set_ups.names()
    with application_set_ups.surroundings(names) as around:
        for name in names:
            with application_set_ups.SetUp(name, binary, *around) as set_up:
                unsafe = set_up.unsafe()
            assert not unsafe, "\n        ".join([name, *unsafe])


def each_has_a_table():
    with open(os.path.join(application_set_ups.FOLDER, "README.md"), encoding="utf-8") as file:
        overview = file.read()
    for name in application_set_ups.names():
        assert os.path.exists(os.path.join(application_set_ups.FOLDER, f"{name}.expected")), f"{name}.expected is missing"
        assert f"({name}.conf)" in overview, f"README.md does not name {name}.conf"
