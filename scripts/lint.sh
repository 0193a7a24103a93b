#!/usr/bin/env bash
# What can be said without running anything: licences, documents, imports, words, structs, manifests,
# formatting, clippy, the documentation. Warnings are errors. A part that fails does not keep the
# next from running. What reads files alone runs beside the compiler.
#
# `scripts/lint.sh --files` leaves out what needs the compiler. Continuous integration has clippy's view from
# `LINTS=1 scripts/test.sh`, which compiles all programs and tests anyway, and so compiles nothing twice.
#
# The compiler of all of it is clippy's driver, as `cargo clippy` has it, so that the documentation finds the crates checked.
set -uo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed_parts=()

timed() { # timed NAME COMMAND...
    local TIMEFORMAT="time: $1 %0R s, CPU %0U s and %0S s in the kernel"
    shift
    time "$@"
}

part() { # part NAME COMMAND...
    timed "$@" || failed_parts+=("$1")
}

read_files() {
    local status=0
    scripts/deny.sh || status=1
    scripts/checks/run.py documents imports words structs manifests || status=1
    "$cargo" fmt --all --check || status=1
    # Where Debian's package apparmor is installed, its parser reads the profile of the services.
    if command -v apparmor_parser >/dev/null; then
        apparmor_parser --quiet --skip-kernel-load --skip-cache packaging/debian/mayfly.apparmor || status=1
    fi
    return $status
}

timed files read_files >"$said" 2>&1 &
if [ "${1:-}" != --files ]; then
    part clippy "$cargo" check --workspace --all-targets --features fuzz/targets --locked
    RUSTDOCFLAGS="-D warnings" part documentation "$cargo" doc --workspace --no-deps --document-private-items --locked
fi
wait $! || failed_parts+=(files)
cat "$said"
[ ${#failed_parts[@]} -eq 0 ] || { echo "failed: ${failed_parts[*]}"; exit 1; }
