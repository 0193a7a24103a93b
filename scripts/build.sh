#!/usr/bin/env bash
# Leaves the programs in target/release (or CARGO_TARGET_DIR): mayfly, and mayfly-tools beside it.
#
#   scripts/build.sh          guided by a profile: built once to count where it goes,
#                             asked for a bit of everything (bench/train.py), built again
#   scripts/build.sh plain    built once; a guided one that is up to date stays
#   scripts/build.sh look     mayfly for a first look, built in the least time: not optimised but for hits, without
#                             jemalloc; prints its path, or that of a guided one that is up to date
#
# The profile shortens what a request costs in user space by about a fifth; nothing else
# differs. It needs llvm-profdata of the compiler's own LLVM, which rustup has
# (`rustup component add llvm-tools`), and PHP-FPM and Python for the asking. Where one
# of them is missing, the plain build is what there is, and a line says so.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}
work=$target/guided
host=$(rustc -vV | sed -n 's/^host: //p')
profdata=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata

# What the program is made from, and with what.
sources() {
    { rustc -vV; find crates bench/tools Cargo.toml Cargo.lock .cargo bench/train.py bench/conf/training.conf -type f -print0 |
        sort -z | xargs -0 sha256sum; } | sha256sum
}

plain() {
    "$cargo" build --release --locked --package mayfly
    tools
}

# By itself: what the tools need of a crate is not to be in the server. No profile guides them.
tools() {
    "$cargo" build --release --locked --package mayfly-tools
}

# In the place of what cargo left there.
install_guided() {
    mkdir -p "$target/release"
    cp "$work/mayfly" "$target/release/mayfly.new"
    mv "$target/release/mayfly.new" "$target/release/mayfly"
}

is_up_to_date() {
    [ -x "$work/mayfly" ] && [ "$(cat "$work/made-from" 2>/dev/null)" = "$(sources)" ]
}

if [ "${1:-}" = look ]; then
    if is_up_to_date; then
        echo "$work/mayfly"
        exit
    fi
    "$cargo" build --profile quick --locked --package mayfly --no-default-features
    echo "$target/quick/mayfly"
    exit
fi
if is_up_to_date; then
    tools
    install_guided
    exit
fi
if [ "${1:-}" = plain ]; then
    plain
    exit
fi

[ -x "$profdata" ] || { command -v rustup >/dev/null && rustup component add llvm-tools >/dev/null 2>&1; } || true
for needed in "$profdata" "$(command -v python3)"; do
    if [ ! -x "$needed" ]; then
        echo "Not guided by a profile: ${needed:-python3} is not there. Built plainly; it works all the same."
        plain
        exit
    fi
done

# Two folders, or each build would throw the other's away. With --target the flags
# reach our code and its dependencies, not build scripts.
build() { # build FLAGS FOLDER PACKAGE...
    local flags=$1 folder=$2
    shift 2
    RUSTFLAGS="${RUSTFLAGS:-} $flags" "$cargo" build --release --locked --target "$host" --target-dir "$folder" "$@"
}
made_from=$(sources)
counts=$(realpath -m "$work/counts")
rm -rf "$counts"
mkdir -p "$counts"
# The server may give up being root, and then writes there all the same.
chmod 777 "$counts"
echo "Building, to count (1 of 3)"
build "-Cprofile-generate=$counts" "$work/counting" --package mayfly
# Who asks is not to be counted.
"$cargo" build --release --locked --package bench-tools
echo "Sending requests (2 of 3)"
tools=$target/release
if ! bench/train.py --binary "$work/counting/$host/release/mayfly" --load "$tools/bench-load" --floor "$tools/bench-floor"; then
    echo "Not guided by a profile: the asking failed. Built plainly; it works all the same."
    plain
    exit
fi
"$profdata" merge -o "$work/profile" "$counts"/*.profraw
echo "Building, guided by the counts (3 of 3)"
build "-Cprofile-use=$(realpath "$work/profile")" "$work/final" --package mayfly
cp "$work/final/$host/release/mayfly" "$work/mayfly"
echo "$made_from" >"$work/made-from"
tools
install_guided
