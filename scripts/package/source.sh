#!/usr/bin/env bash
# Packs the sources of HEAD with all crates and a folder debian/, for a build without a network:
#
#   scripts/package/source.sh      leaves mayfly-VERSION-vendored.tar.xz in target/package/out
#
# Unpacked, `dpkg-buildpackage --build=binary --no-sign` makes the Debian packages there, and `make build` the program. Both
# need Rust and what scripts/setup.sh installs for them. The same commit and the same crates give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo=${CARGO:-cargo}
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=mayfly-$version
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8

rm -rf "$work/source"
mkdir -p "$work/source" "$work/out"
git archive --prefix="$name/" HEAD | tar --extract --directory "$work/source"
cd "$work/source/$name"
"$cargo" vendor --quiet --locked --versioned-dirs vendor >/dev/null
printf '%s\n' '' '[source.crates-io]' 'replace-with = "vendored"' '[source.vendored]' 'directory = "vendor"' >>.cargo/config.toml
scripts/package/control.sh "$PWD/debian"
cd "$work/source"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --create "$name" |
    xz --threads=1 -6 >"$work/out/$name-vendored.tar.xz"
rm -rf "$work/source"
echo "$name-vendored.tar.xz: $(stat -c %s "$work/out/$name-vendored.tar.xz") bytes"
