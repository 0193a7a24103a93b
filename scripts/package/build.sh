#!/usr/bin/env bash
# Makes the packages of this version, from the sources alone: the same sources give the same bytes.
#
#   scripts/package/build.sh [debian] [tarball]     both, where none is named
#   scripts/package/build.sh tree                   the files of the Debian packages, for debian/rules (source.sh)
#
# What comes out, in target/package/out (or below CARGO_TARGET_DIR):
#   mayfly_VERSION_ARCH.deb, mayfly-tools_VERSION_ARCH.deb   the programs for Debian and Ubuntu; *-dbgsym_* are their symbols
#   mayfly-VERSION-linux-MACHINE.tar.gz                      static programs for any other distribution
#   mayfly-VERSION-MACHINE.cdx.json                          what the programs are made of (CycloneDX)
#
# ARCH=amd64 or ARCH=arm64 is the architecture by Debian's name: this machine's, where none is named; the other one is
# compiled by Debian's cross compiler, and qemu runs the program for its manual pages. The network is not used once the
# crates are there (cargo fetch --locked). MAYFLY_BINARY=PATH packs a program that is there already, with mayfly-tools
# beside it, to try the scripts of the package. A profile that make build has recorded guides the compiler.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo=${CARGO:-cargo}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target/package
out=$work/out
host=$(rustc -vV | sed -n 's/^host: //p')
case ${ARCH:-$(dpkg --print-architecture)} in
    amd64) arch=amd64 machine=x86_64 ;;
    arm64) arch=arm64 machine=aarch64 ;;
    *) echo "ARCH=${ARCH:-$(dpkg --print-architecture)}: packages are made for amd64 and arm64." >&2; exit 2 ;;
esac
platform=$machine-unknown-linux-gnu musl=$machine-unknown-linux-musl
# Names of the binary tools begin with this, and the program is run by these words; neither for this machine's own.
binary_tools='' runner=()
if [ "$platform" != "$host" ]; then
    binary_tools=$machine-linux-gnu-
    runner=("qemu-$machine-static" -L "/usr/$machine-linux-gnu")
    for needed in "${binary_tools}gcc" "${runner[0]}"; do
        command -v "$needed" >/dev/null || { echo "$needed is missing: scripts/setup.sh package-$arch" >&2; exit 1; }
    done
    for it in "$platform" "$musl"; do
        variable=${it^^}
        export "CARGO_TARGET_${variable//-/_}_LINKER=${binary_tools}gcc"
    done
fi
# The newest version of glibc that the programs need.
newest=
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# A suffix makes a later package of the same sources, for trials of upgrades.
package_version=$version${MAYFLY_PACKAGE_SUFFIX:-}
# Older glibcs are those of Ubuntu 22.04 (2.35) and Debian 12 (2.36).
NEWEST_GLIBC=2.35
# 8 MB, for the server's package that no profile guides.
DEB_BYTES_MAX=8388608

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C.UTF-8

wanted=${*:-debian tarball}
mkdir -p "$out"

fetch() {
    "$cargo" fetch --locked --offline --target "$platform" >/dev/null 2>&1 || "$cargo" fetch --locked --target "$platform"
}

# Rust's library for a target comes from rustup.
have_library() { # have_library TARGET
    [ ! -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ] || return 0
    command -v rustup >/dev/null || { echo "Rust's library for $1 is missing, and so is rustup." >&2; return 1; }
    rustup target add "$1"
}

# No path of this machine is in the program.
flags() {
    local home=${CARGO_HOME:-$HOME/.cargo} profile=$target/guided/profile
    printf '%s' "--remap-path-prefix=$home=/cargo --remap-path-prefix=$PWD=/mayfly --remap-path-prefix=$work=/build"
    if [ -s "$profile" ]; then
        printf ' %s' "-Cprofile-use=$profile"
    fi
    # Functions of the same code are there once. LLVM's linker does it, which Rust uses for this target.
    if [ "$platform" = x86_64-unknown-linux-gnu ]; then
        printf ' %s' "-Clink-arg=-Wl,--icf=all"
    fi
}

# Builds each program by itself: what the tools need of a crate is not to be in the server.
build() { # build NAME TARGET: leaves both programs in $work/NAME/TARGET/release
    local program
    for program in mayfly mayfly-tools; do
        build_one "$1" "$2" "$program"
    done
}

build_one() { # build_one NAME TARGET PROGRAM
    local name=$1 platform=$2
    CFLAGS="${CFLAGS:-} -ffile-prefix-map=$PWD=/mayfly -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo -ffile-prefix-map=$work=/build" \
        RUSTFLAGS=$(flags) \
        "$cargo" build --release --locked --offline --package "$3" --target "$platform" --target-dir "$work/$name"
}

# The newest version of glibc that a program needs; nothing for a static one.
newest_glibc() {
    "${binary_tools}objdump" -T "$1" 2>/dev/null | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -uV | tail -1
}

# Files that packages of all kinds have. Pages and completions come from the program itself.
lay_out() { # lay_out FOLDER PROGRAM
    local folder=$1 program=$2
    rm -rf "$folder"
    mkdir -p "$folder"/{conf/conf.d,conf/sites,doc/guide,manual}
    cp packaging/conf/mayfly.conf packaging/conf/fastcgi.conf "$folder/conf/"
    cp packaging/conf/site.example "$folder/conf/sites/example"
    scripts/package/mime_types.py "${runner[@]}" "$program" >"$folder/conf/mime.types"
    "${runner[@]}" "$program" --as=manual "$folder/manual"
    cp docs/*.md "$folder/doc/"
    cp docs/guide/*.md "$folder/doc/guide/"
    cp "$work/THIRD-PARTY-NOTICES" LICENSE "$folder/"
    cp "$work/mayfly.cdx.json" "$folder/"
}

bill_of_materials() {
    scripts/package/materials.py --target "$platform" --notices "$work/THIRD-PARTY-NOTICES" --sbom "$work/mayfly.cdx.json"
    cp "$work/mayfly.cdx.json" "$out/mayfly-$version-$machine.cdx.json"
}

# The files of the package are packed once more: with xz's filter for x86 machine code it is a twentieth smaller, and
# dpkg and apt unpack it as any other. The filter for ARM is newer than the xz of Ubuntu 22.04.
squeeze() { # squeeze PACKAGE
    local folder=$work/squeezed filter=()
    [ "$machine" != x86_64 ] || filter=(--x86)
    rm -rf "$folder"
    mkdir -p "$folder"
    dpkg-deb --fsys-tarfile "$1" | xz --threads=1 "${filter[@]}" --lzma2=preset=9e >"$folder/data.tar.xz"
    dpkg-deb --ctrl-tarfile "$1" | xz --threads=1 -9 >"$folder/control.tar.xz"
    echo 2.0 >"$folder/debian-binary"
    (cd "$folder" && rm -f package && ar rcD package debian-binary control.tar.xz data.tar.xz)
    mv "$folder/package" "$1"
}

# The files of the Debian packages in the places from which packaging/debian/*.install takes them.
lay_out_debian() { # lay_out_debian FOLDER
    local folder=$1 program=${MAYFLY_BINARY:-}
    if [ -z "$program" ]; then
        have_library "$platform"
        build shared "$platform"
        program=$work/shared/$platform/release/mayfly
    fi
    newest=$({ newest_glibc "$program" || true; newest_glibc "$program-tools" || true; } | sort -V | tail -1)
    if [ "$(printf '%s\n' "${newest:=2.34}" "$NEWEST_GLIBC" | sort -V | tail -1)" != "$NEWEST_GLIBC" ]; then
        echo "The program needs glibc $newest, newer than $NEWEST_GLIBC of Ubuntu 22.04. These symbols do:" >&2
        "${binary_tools}objdump" -T "$program" "$program-tools" | grep "GLIBC_$newest" >&2
        echo "Build on Debian 12 or Ubuntu 22.04." >&2
        return 1
    fi
    lay_out "$folder" "$program"
    cp "$program" "$folder/mayfly"
    cp "$program-tools" "$folder/mayfly-tools"
    mkdir -p "$folder"/{default,apparmor,completions/bash,needrestart,sysusers,tmpfiles,tools}
    mv "$folder"/manual/mayfly-{advise,bench,tools}.1 "$folder/tools/"
    cp packaging/conf/default "$folder/default/mayfly"
    cp packaging/debian/mayfly.apparmor "$folder/apparmor/usr.bin.mayfly"
    cp packaging/debian/mayfly.needrestart "$folder/needrestart/mayfly.conf"
    cp packaging/debian/mayfly.sysusers "$folder/sysusers/mayfly.conf"
    cp packaging/debian/mayfly.tmpfiles "$folder/tmpfiles/mayfly.conf"
    cp "$folder/manual/mayfly.bash" "$folder/completions/bash/mayfly"
    cp "$folder/manual/mayfly.zsh" "$folder/completions/_mayfly"
    cp CHANGELOG.md "$folder/CHANGELOG.md"
}

# The same for each architecture: the libraries of a cross compiler are in packages of another name.
name_libraries() { # name_libraries FOLDER
    printf '%s\n' "libc 6 libc6 (>= $newest)" "libm 6 libc6 (>= $newest)" "libgcc_s 1 libgcc-s1" >"$1/shlibs.local"
}

# For debian/rules in a tree of the sources and their crates (scripts/package/source.sh).
tree() {
    lay_out_debian "$work/tree"
    name_libraries debian
}

debian() {
    local source=$work/mayfly-$version bytes package
    lay_out_debian "$source"
    scripts/package/control.sh "$source/debian"
    name_libraries "$source/debian"
    find "$source" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
    rm -f "$work"/mayfly*_"$package_version"_*
    (cd "$source" && dpkg-buildpackage --build=binary --host-arch="$arch" --no-sign --no-check-builddeps >"$work/dpkg-buildpackage.log" 2>&1) ||
        { tail -40 "$work/dpkg-buildpackage.log" >&2; return 1; }
    mv "$work"/mayfly*_"$package_version"_"$arch".deb "$out/"
    for package in mayfly mayfly-tools; do
        package=$out/${package}_${package_version}_$arch.deb
        squeeze "$package"
        lintian --fail-on error --tag-display-limit 0 "$package"
        bytes=$(stat -c %s "$package")
        echo "$(basename "$package"): $bytes bytes, newest glibc symbol $newest"
        [ -n "${MAYFLY_BINARY:-}" ] || [ -s "$target/guided/profile" ] || [ "$bytes" -le "$DEB_BYTES_MAX" ] || { echo "More than $DEB_BYTES_MAX bytes." >&2; return 1; }
    done
}

# musl's headers and its start for the other architecture, where Debian's package puts them for this one; and a compiler
# that uses them, as musl-gcc does. Fetched once.
cross_musl() {
    local place=$target/tools/musl-$arch
    if [ ! -x "$place/musl-gcc" ]; then
        scripts/package/foreign_package.sh "$arch" musl-dev "$place"
        sed -e "s#/usr/\(include\|lib\)/$(uname -m)-linux-musl#$place/usr/\1/$machine-linux-musl#g; s#ld-musl-$(uname -m)#ld-musl-$machine#" \
            "/usr/lib/$(uname -m)-linux-musl/musl-gcc.specs" >"$place/musl-gcc.specs"
        printf '#!/bin/sh\nexec %sgcc "$@" -specs "%s"\n' "$binary_tools" "$place/musl-gcc.specs" >"$place/musl-gcc"
        chmod 755 "$place/musl-gcc"
    fi
    echo "$place/musl-gcc"
}

# Static, with musl as its C library, so that it runs on any Linux. C code of crates is compiled by musl-gcc, which finds the
# kernel's headers (linux/*.h) behind musl's own; Rust's library for musl comes from rustup.
tarball() {
    local program=${MAYFLY_BINARY:-} compiler=musl-gcc flags="-idirafter /usr/include -idirafter /usr/include/$machine-linux-gnu" folder
    if [ -z "$program" ]; then
        have_library "$platform"
        have_library "$musl"
        if [ -n "$binary_tools" ]; then
            compiler=$(cross_musl)
            flags="-idirafter /usr/$machine-linux-gnu/include"
        fi
        export "CC_${musl//-/_}=$compiler"
        # gcc's helpers for atomic instructions ask glibc for the kind of processor.
        [ "$arch" != arm64 ] || flags+=" -mno-outline-atomics"
        CFLAGS="${CFLAGS:-} $flags" build static "$musl"
        program=$work/static/$musl/release/mayfly
        if "${binary_tools}objdump" -p "$program" "$program-tools" | grep NEEDED >&2; then
            echo "They are not static." >&2
            return 1
        fi
    fi
    folder=$work/mayfly-$version-linux-$machine
    lay_out "$folder" "$program"
    "${binary_tools}objcopy" --strip-all "$program" "$folder/mayfly"
    "${binary_tools}objcopy" --strip-all "$program-tools" "$folder/mayfly-tools"
    chmod 755 "$folder/mayfly" "$folder/mayfly-tools"
    cp packaging/tarball.md "$folder/README.md"
    mkdir "$folder/systemd"
    cp packaging/debian/mayfly.service packaging/debian/mayfly@.service "$folder/systemd/"
    cp packaging/debian/mayfly.sysusers "$folder/systemd/mayfly.sysusers.conf"
    cp packaging/debian/mayfly.tmpfiles "$folder/systemd/mayfly.tmpfiles.conf"
    tar --directory "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --mode=u+rwX,go+rX,go-w --create "$(basename "$folder")" | gzip --no-name -9 >"$out/$(basename "$folder").tar.gz"
    echo "$(basename "$folder").tar.gz: $(stat -c %s "$out/$(basename "$folder").tar.gz") bytes"
}

fetch
bill_of_materials
for kind in $wanted; do
    case $kind in
        debian|tarball|tree) "$kind" ;;
        *) echo "usage: scripts/package/build.sh [debian] [tarball] | tree" >&2; exit 2 ;;
    esac
done
