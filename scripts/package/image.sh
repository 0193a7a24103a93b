#!/usr/bin/env bash
# Makes an image from packaging/Containerfile and the Debian package, without a daemon: with buildah.
#
#   scripts/package/image.sh      needs target/package/out/mayfly_*.deb: scripts/package/build.sh debian
#
# What comes out: target/package/out/mayfly-VERSION-image.tar (an OCI archive: podman load, skopeo copy). Where the image
# of Debian that the Containerfile begins with cannot be fetched, the same is made from Debian's packages by mmdebstrap.
# The store of images is target/package/image, apart from that of this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package
out=$work/out
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
base=docker.io/library/$(sed -n 's/^FROM //p' packaging/Containerfile)
suite=bookworm
package=$(echo "$out"/mayfly_"$version"_*.deb)
[ -e "$package" ] || { echo "There is no $package: scripts/package/build.sh debian makes it." >&2; exit 1; }

builder() { buildah --root "$work/image/storage" --runroot "$work/image/run" --storage-driver vfs "$@"; }

# As Debian makes it: the essential packages and apt, without lists of packages and documentation.
base_from_packages() {
    local container
    echo "Making $base from Debian's packages"
    mmdebstrap --quiet --variant=minbase --format=tar --include=ca-certificates \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/log/*' \
        "$suite" "$work/image/base.tar" "$(python3 -c 'import sys; sys.path.insert(0, "scripts/package"); import roots; print(roots.mirror())')"
    container=$(builder from scratch)
    builder add --quiet "$container" "$work/image/base.tar" / >/dev/null
    builder config --cmd bash "$container"
    builder commit --quiet "$container" "$base" >/dev/null
    builder rm "$container" >/dev/null
    rm -f "$work/image/base.tar"
}

mkdir -p "$work/image" "$work/image/context"
builder inspect --type image "$base" >/dev/null 2>&1 || builder pull --quiet "$base" >/dev/null 2>&1 || base_from_packages
# The context is the package alone.
rm -f "$work/image/context"/*
ln "$package" "$work/image/context/" 2>/dev/null || cp "$package" "$work/image/context/"
builder bud --isolation chroot --network host --pull-never --quiet --timestamp "$(git log -1 --format=%ct)" \
    --tag "localhost/mayfly:$version" --file packaging/Containerfile "$work/image/context" >"$work/image/build.log" 2>&1 ||
    { tail -30 "$work/image/build.log" >&2; exit 1; }
rm -f "$out/mayfly-$version-image.tar"
builder push --quiet "localhost/mayfly:$version" "oci-archive:$out/mayfly-$version-image.tar:mayfly:$version"
echo "mayfly-$version-image.tar: $(stat -c %s "$out/mayfly-$version-image.tar") bytes, from $base"
