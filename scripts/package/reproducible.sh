#!/usr/bin/env bash
# Builds the packages twice from the sources of HEAD and the same recorded profile, in two folders, and compares every byte.
#
#   scripts/package/reproducible.sh [--first FOLDER] [debian] [tarball]      both, where none is named
#
#   --first FOLDER   packages that were built from HEAD elsewhere (target/package/out): only the second build is made
#   QUICK=1          without optimisation: finds what differs in minutes
#
# The second build has another path, another length of it, another umask and another time zone than the first. What
# must be the same is the compiler, the C compiler, and the folder of crates, whose path is taken out by both compilers.
set -euo pipefail
cd "$(dirname "$0")/../.."
place=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package/reproducible
profile=$(realpath -m "${CARGO_TARGET_DIR:-target}")/guided/profile
first=
if [ "${1:-}" = --first ]; then
    first=$(realpath "$2")
    shift 2
fi
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH
if [ -n "${QUICK:-}" ]; then
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
fi

build() { # build FOLDER KIND...: leaves the packages in FOLDER/target/package/out
    local folder=$1
    shift
    rm -rf "$folder"
    mkdir -p "$folder/target/guided"
    git archive "$commit" | tar --extract --directory "$folder"
    [ ! -s "$profile" ] || cp "$profile" "$folder/target/guided/profile"
    echo "Building in $folder"
    (cd "$folder" && unset CARGO_TARGET_DIR && scripts/package/build.sh "$@") >"$folder.log" 2>&1 ||
        { tail -30 "$folder.log" >&2; return 1; }
}

# Says what differs in two files of the same name.
explain() { # explain ONE OTHER
    local one=$1 other=$2 unpack file
    rm -rf "$place/unpacked"
    for unpack in one other; do
        mkdir -p "$place/unpacked/$unpack"
        case ${!unpack} in
            *.deb) dpkg-deb --raw-extract "${!unpack}" "$place/unpacked/$unpack" ;;
            *.tar.gz) tar --extract --file "${!unpack}" --directory "$place/unpacked/$unpack" ;;
            *) cp "${!unpack}" "$place/unpacked/$unpack/" ;;
        esac
    done
    (cd "$place/unpacked/one" && find . -type f | sort) | while read -r file; do
        cmp --silent "$place/unpacked/one/$file" "$place/unpacked/other/$file" && continue
        echo "  $file: $(cmp "$place/unpacked/one/$file" "$place/unpacked/other/$file" 2>&1 | sed 's/.*differ: //')"
        sections "$place/unpacked/one/$file" "$place/unpacked/other/$file"
    done
}

# The sections of a program that differ.
sections() { # sections ONE OTHER
    local name
    readelf --sections --wide "$1" 2>/dev/null | sed -n 's/^ *\[ *[0-9]*\] \(\.[^ ]*\).*/\1/p' | while read -r name; do
        objcopy --dump-section "$name=$place/section-one" "$1" /dev/null 2>/dev/null || continue
        objcopy --dump-section "$name=$place/section-other" "$2" /dev/null 2>/dev/null || { echo "    $name is missing"; continue; }
        cmp --silent "$place/section-one" "$place/section-other" || echo "    $name differs"
    done
}

mkdir -p "$place"
if [ -z "$first" ]; then
    (umask 022 && build "$place/one" "$@")
    first=$place/one/target/package/out
fi
(umask 002 && TZ=Pacific/Kiritimati build "$place/another-folder/of-a-longer-name" "$@")
second=$place/another-folder/of-a-longer-name/target/package/out

passed=0 failed=0
for file in "$second"/*; do
    name=$(basename "$file")
    if cmp --silent "$file" "$first/$name"; then
        passed=$((passed + 1))
        echo "  same  $(sha256sum <"$file" | cut -c1-16)  $name"
    else
        failed=$((failed + 1))
        echo "  FAIL  $name differs:"
        [ -e "$first/$name" ] && explain "$first/$name" "$file"
    fi
done
rm -rf "$place/unpacked" "$place"/section-*
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
