#!/usr/bin/env bash
# Makes images without a daemon, with buildah: from packaging/Containerfile and the Debian package, with PHP-FPM inside; and
# from packaging/Containerfile.static and the archive, for PHP-FPM in a container beside it.
#
#   scripts/package/image.sh [debian] [static]      both, where none is named
#
# They need what scripts/package/build.sh makes. What comes out, in target/package/out, are OCI archives (podman load,
# skopeo copy): mayfly-VERSION-image.tar, and mayfly-VERSION-static-MACHINE-image.tar for each archive that is there. Where
# the image of Debian cannot be fetched, the same is made from Debian's packages by mmdebstrap.
# The store of images is target/package/image, apart from that of this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package
out=$work/out
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
base=docker.io/library/$(sed -n 's/^FROM //p' packaging/Containerfile)
suite=bookworm
created=$(git log -1 --format=%ct)
# Of the static image, as it is unpacked: what the archive holds, and little else.
STATIC_BYTES_MAX=60000000

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

# An archive of what is in the context.
archive() { # archive NAME CONTAINERFILE OPTION...
    local name=$1 file=$2
    shift 2
    builder bud --isolation chroot --network host --pull-never --quiet --timestamp "$created" "$@" \
        --tag "localhost/$name" --file "$file" "$context" >"$work/image/build.log" 2>&1 ||
        { tail -30 "$work/image/build.log" >&2; return 1; }
    rm -f "$out/${name/:/-}-image.tar"
    builder push --quiet "localhost/$name" "oci-archive:$out/${name/:/-}-image.tar:$name"
    echo "${name/:/-}-image.tar: $(stat -c %s "$out/${name/:/-}-image.tar") bytes"
}

debian() {
    local package
    package=$out/mayfly_${version}_$(dpkg --print-architecture).deb
    [ -e "$package" ] || { echo "There is no $package: scripts/package/build.sh debian makes it." >&2; return 1; }
    builder inspect --type image "$base" >/dev/null 2>&1 || builder pull --quiet "$base" >/dev/null 2>&1 || base_from_packages
    cp "$package" "$context/"
    archive "mayfly:$version" packaging/Containerfile
}

static() {
    local pair package bytes found=
    for pair in amd64:x86_64 arm64:aarch64; do
        package=$out/mayfly-$version-linux-${pair#*:}.tar.gz
        [ -e "$package" ] || continue
        found=yes
        rm -rf "${context:?}"/*
        tar --extract --file "$package" --directory "$context" --strip-components=1
        cp /etc/ssl/certs/ca-certificates.crt "$context/"
        echo "mayfly:x:65532:65532::/:/nonexistent" >"$context/passwd"
        echo "mayfly:x:65532:" >"$context/group"
        bytes=$(cat "$context"/{mayfly,ca-certificates.crt,THIRD-PARTY-NOTICES,LICENSE} | wc -c)
        [ "$bytes" -le "$STATIC_BYTES_MAX" ] || { echo "More than $STATIC_BYTES_MAX bytes: $bytes." >&2; return 1; }
        archive "mayfly-static:$version-${pair#*:}" packaging/Containerfile.static --arch "${pair%:*}"
    done
    [ -n "$found" ] || { echo "There is no mayfly-$version-linux-*.tar.gz in $out: scripts/package/build.sh tarball makes it." >&2; return 1; }
}

context=$work/image/context
mkdir -p "$context"
for kind in ${*:-debian static}; do
    rm -rf "${context:?}"/*
    case $kind in
        debian|static) "$kind" ;;
        *) echo "usage: scripts/package/image.sh [debian] [static]" >&2; exit 2 ;;
    esac
done
rm -rf "${context:?}"
