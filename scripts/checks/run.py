#!/usr/bin/env python3
"""Checks of what surrounds the crates: documents, imports, words, structs, scripts, measurements, TLS, metrics, top, clients of others, several nodes, learned pages, a year in a minute, the PHP library, the demo site, the examples.

    scripts/checks/run.py [--binary FILE] [PART...]

Without a part, all of them; `make lint` runs those that only read the source. Each check
is a function whose name is the promise. The last line of the output reads "N passed,
N failed". Works with nginx as the binary, too, which is how the checks themselves are
checked; what only Mayfly promises is left out then.
"""

import argparse
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import churn
import clients
import demo
import documents
import encryption
import example
import imports
import learned
import manifests
import measurements
import metrics
import nodes
import php_library
import scripts
import set_ups
import structs
import top
import words

PARTS = {part.__name__: part for part in (documents, imports, words, structs, manifests, scripts, measurements, encryption, metrics, top, clients, nodes, learned, churn, php_library, demo, example, set_ups)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/debug/mayfly"))
    chosen = parser.parse_args()
    binary = os.path.abspath(chosen.binary)
    unknown = set(chosen.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    passed = failed = 0
    for module in [PARTS[name] for name in chosen.parts or PARTS]:
        print(f"\n{module.__name__}: {module.__doc__.splitlines()[0]}", flush=True)
        for promise, check in module.checks(binary):
            try:
                check()
                passed += 1
                print(f"  ok    {promise}", flush=True)
            except Exception as error:
                failed += 1
                print(f"  FAIL  {promise}\n        {error}", flush=True)
                if not isinstance(error, AssertionError):
                    traceback.print_exc(file=sys.stdout)
    print(f"\n{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
