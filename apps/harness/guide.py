"""The commands of a guide, and what it says that they print: read from its `console` blocks."""

import re


class Command:
    """`expected` are lines of the output in their order; `...` stands for anything."""

    def __init__(self, text):
        self.text = text
        self.expected = []

    def missing(self, output):
        """The first expected line that the output does not have where it should be; none is best."""
        lines = iter(output.splitlines())
        for expected in self.expected:
            if expected.strip() == "...":
                continue
            pattern = ".*".join(re.escape(part) for part in expected.split("..."))
            if not any(re.fullmatch(pattern, line.rstrip()) for line in lines):
                return expected
        return None


def commands(path):
    """All of them, in order."""
    found = []
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Command(line[2:]))
            else:
                found[-1].expected.append(line)
    return found
