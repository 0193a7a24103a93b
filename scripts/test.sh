#!/usr/bin/env bash
# Every test: the crates, the demo and the scripts, what a hit costs in instructions, real
# applications. A part that fails does not keep the next from running; the last line adds
# all of them up as "N passed, N failed".
#
# Parts that keep one core busy, or mostly wait, run beside others: the program is linked while
# the crates are tested, and instructions, which no load changes, are counted while the checks
# and the applications run.
#
#   scripts/test.sh BINARY      the program that the build below leaves
set -uo pipefail
cd "$(dirname "$0")/.."

binary=$1
cargo=${CARGO:-cargo}
log=$(mktemp)
beside=$(mktemp -d)
declare -A started=()
trap 'kill "${started[@]}" 2>/dev/null; rm -rf "$log" "$beside"' EXIT
failed_parts=()

part() { # part NAME COMMAND...
    local name=$1 begun=$SECONDS
    shift
    "$@" 2>&1 | tee -a "$log" || failed_parts+=("$name")
    took "$name" "$begun"
}

took() { # took NAME SECONDS_AT_ITS_BEGIN
    echo "time: $1 $((SECONDS - $2)) s"
}

# A part in the background, behind the others; `end` waits for it and shows what it said.
begin() { # begin NAME COMMAND...
    local name=$1
    shift
    (
        begun=$SECONDS
        nice "$@" &
        trap 'kill $!' TERM
        wait $!
        status=$?
        took "$name" "$begun"
        exit "$status"
    ) >"$beside/$name" 2>&1 &
    started[$name]=$!
}
end() { # end NAME
    wait "${started[$1]}" || failed_parts+=("$1")
    unset "started[$1]"
    tee -a "$log" <"$beside/$1"
}

# Many tests wait for a clock or for another process, so more of them run than there are cores.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
part debug-build "$cargo" test --workspace --locked --no-run
begin build "$cargo" build --release --locked --package mayfly
part crates "$cargo" test --workspace --locked --no-fail-fast
end build
begin instructions bench/instructions.py --binary "$binary"
begin checks scripts/checks/run.py --binary "$binary"
if [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; then
    part applications python3 apps/run.py --binary "$binary" --seconds 30
else
    echo "left out: real applications (apps/run.py needs root, or sudo without a password)"
fi
end checks
end instructions

took "all tests" 0
[ ${#failed_parts[@]} -eq 0 ] || echo "failed: ${failed_parts[*]}"
# Cargo writes one line for each test program, the others one in all.
sed -nE 's/^(test result: [A-Za-z]+\. )?([0-9]+) passed[;,] ([0-9]+) failed.*/\2 \3/p' "$log" |
    awk '{ passed += $1; failed += $2 } END { printf "%d passed, %d failed\n", passed, failed }'
[ ${#failed_parts[@]} -eq 0 ]
