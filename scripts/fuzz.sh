#!/usr/bin/env bash
# Fuzzes each target for FUZZ_SECONDS (20), or those named: scripts/fuzz.sh config
#
# libFuzzer on stable Rust. What is fuzzed holds no unsafe code, so a sanitizer would have
# nothing to find; the coverage instrumentation is LLVM's own pass and needs no
# nightly. What is interesting is kept in fuzz/corpus, a crash in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-20}
host=$(rustc -vV | sed -n 's/^host: //p')
target_dir=${CARGO_TARGET_DIR:-target}/fuzz

instrumentation="--cfg fuzzing
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0"

# With --target the flags reach our code and its dependencies, not build scripts.
RUSTFLAGS=$(echo $instrumentation) ${CARGO:-cargo} build --profile fuzz --quiet --locked \
    --package fuzz --features link --target "$host" --target-dir "$target_dir"

if [ $# -eq 0 ]; then
    set -- $(sed -n 's|^path = "fuzz_targets/\(.*\)\.rs"$|\1|p' fuzz/Cargo.toml)
fi
failed=0
for name in "$@"; do
    corpus=fuzz/corpus/$name artifacts=fuzz/artifacts/$name log=$target_dir/$name.log
    mkdir -p "$corpus" "$artifacts" "fuzz/seeds/$name"
    # A slow input counts as a failure after 5 s, and so does one that needs 1 GB.
    if "$target_dir/$host/fuzz/$name" "$corpus" "fuzz/seeds/$name" \
        -artifact_prefix="$artifacts/" -max_total_time="$seconds" -max_len=16384 \
        -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "$name: $runs inputs in $seconds s, $(ls "$corpus" | wc -l) kept, no crash"
    else
        tail -n 40 "$log" >&2
        echo "$name: failed; the input is in $artifacts" >&2
        failed=1
    fi
done
exit $failed
