#!/usr/bin/env python3
"""Prints the types of files that `mayfly serve` knows, for mime.types: one list, in the program. The arguments are the
words that run the program."""

import re
import subprocess
import sys
import tempfile


def main():
    with tempfile.TemporaryDirectory() as site:
        printed = subprocess.run([*sys.argv[1:], "serve", site, "--print-config"], check=True, capture_output=True, text=True)
    block = re.search(r"^ *types \{\n(.*?)^ *\}", printed.stdout, re.DOTALL | re.MULTILINE)
    lines = [line.strip() for line in block[1].splitlines() if line.strip()]
    print("types {\n" + "".join(f"    {line}\n" for line in lines) + "}")


main()
