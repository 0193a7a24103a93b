#!/usr/bin/env python3
"""Prints debian/changelog: one entry, for the version of the workspace, at SOURCE_DATE_EPOCH. What has changed for
people who run Mayfly is in CHANGELOG.md, which the package has as well."""

import email.utils
import os
import re
import tomllib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def main():
    with open(os.path.join(ROOT, "Cargo.toml"), "rb") as file:
        version = tomllib.load(file)["workspace"]["package"]["version"]
    with open(os.path.join(ROOT, "packaging/debian/control"), encoding="utf-8") as file:
        maintainer = re.search(r"^Maintainer: (.*)$", file.read(), re.MULTILINE)[1]
    version += os.environ.get("MAYFLY_PACKAGE_SUFFIX", "")
    date = email.utils.formatdate(int(os.environ["SOURCE_DATE_EPOCH"]))
    print(f"mayfly ({version}) stable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {maintainer}  {date}")


main()
