#!/usr/bin/env bash
# Every test: the crates, the demo and the scripts, real applications, what a hit costs in
# instructions. A part that fails does not keep the next from running; the last line adds
# all of them up as "N passed, N failed".
#
# All of them run what `cargo test` builds, whose assertions are on, side by side: most of them mostly wait.
#
# LINTS=1 has that build done by clippy's driver, which compiles as rustc does and refuses what clippy warns of.
set -uo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
cargo=${CARGO:-cargo}
log=$(mktemp)
beside=$(mktemp -d)
declare -A started=()
trap stop_all EXIT
failed_parts=()

stop_all() {
    local group
    for group in "${started[@]}"; do
        kill -- "-$group" 2>/dev/null
    done
    rm -rf "$log" "$beside"
}

# What a part takes, of the clock and of the processors.
timed() { # timed NAME COMMAND...
    local TIMEFORMAT="time: $1 %0R s, CPU %0U s and %0S s in the kernel"
    shift
    time "$@"
}

part() { # part NAME COMMAND...
    timed "$@" 2>&1 | tee -a "$log" || failed_parts+=("$1")
}

# A part beside the others, in a process group of its own; `end` waits for it and shows what it said.
begin() { # begin NAME COMMAND...
    set -m
    timed "$@" >"$beside/$1" 2>&1 &
    set +m
    started[$1]=$!
}
end() { # end NAME
    wait "${started[$1]}" || failed_parts+=("$1")
    unset "started[$1]"
    tee -a "$log" <"$beside/$1"
}

# The count keeps the processors busy where the others mostly wait: it comes when the browsers have gone.
applications_and_count() {
    local status=0
    if [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; then
        python3 apps/run.py --binary "$target/debug/mayfly" --seconds 30 --at-once 4 || status=1
    else
        echo "left out: real applications (apps/run.py needs root, or sudo without a password)"
    fi
    timed instructions bench/instructions.py --binary "$target/debug/mayfly" --build dev || status=1
    timed walks bench/walks.py --binary "$target/debug/mayfly" || status=1
    return $status
}

# Most tests wait for a clock or for another process, so more of them run than there are cores.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))}
if [ -n "${LINTS:-}" ]; then
    export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
fi
part debug-build "$cargo" test --workspace --locked --no-run
begin checks scripts/checks/run.py --binary "$target/debug/mayfly"
begin applications applications_and_count
part crates "$cargo" test --workspace --locked --no-fail-fast
end checks
end applications

echo "time: all tests $SECONDS s"
[ ${#failed_parts[@]} -eq 0 ] || echo "failed: ${failed_parts[*]}"
# Cargo writes one line for each test program, the others one in all.
sed -nE 's/^(test result: [A-Za-z]+\. )?([0-9]+) passed[;,] ([0-9]+) failed.*/\2 \3/p' "$log" |
    awk '{ passed += $1; failed += $2 } END { printf "%d passed, %d failed\n", passed, failed }'
[ ${#failed_parts[@]} -eq 0 ]
