#!/usr/bin/env bash
# Looks for errors of memory in the crates that have unsafe code: learn-library, inherited-files, time-slice.
#
# Miri runs their own tests. The library, inside of PHP-FPM, is made with AddressSanitizer and runs through the tests of
# crates/preload. Both need Rust's nightly toolchain (`rustup toolchain install nightly --component miri rust-src`); the
# sanitizer needs gcc's libasan as well.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/unsafe
host=$(rustc -vV | sed -n 's/^host: //p')
if ! "$cargo" +nightly miri --version >/dev/null 2>&1; then
    echo "Not looked for errors of memory: rustup toolchain install nightly --component miri rust-src" >&2
    exit 0
fi

MIRIFLAGS=-Zmiri-disable-isolation "$cargo" +nightly miri test --quiet --locked --target-dir "$target/miri" \
    --package learn-library --package inherited-files --package time-slice

RUSTFLAGS=-Zsanitizer=address "$cargo" +nightly build --quiet --locked --target-dir "$target/address" --target "$host" --package learn-library
# PHP opens its extensions with RTLD_DEEPBIND, which the sanitizer refuses.
cat >"$target/plain_dlopen.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>

void *dlopen(const char *path, int flags) {
    void *(*next)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
    return next(path, flags & ~RTLD_DEEPBIND);
}
C
gcc -shared -fPIC -o "$target/plain_dlopen.so" "$target/plain_dlopen.c"
# An error ends PHP with a status, and the test finds no answer. A worker's own growth is hidden by the sanitizer's.
ASAN_OPTIONS=detect_leaks=0:exitcode=99:verify_asan_link_order=0 \
    PRELOAD_SANITIZED=$target/plain_dlopen.so:$(gcc -print-file-name=libasan.so):$target/address/$host/debug/liblearn_library.so \
    "$cargo" test --quiet --locked --package preload --test php -- --skip worker_does_not_grow
