#!/usr/bin/env bash
# Makes RPM packages for Fedora, Alma and their like from the Debian packages in target/package/out: the same files, but for
# those that only Debian has.
#
#   scripts/package/rpm.sh      for each architecture that has packages there; they come out beside them
#
# The same Debian packages give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package
out=$work/out
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)${MAYFLY_PACKAGE_SUFFIX:-}
place=$work/rpm
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8

# Lines of %files: Mayfly's own folders, and files. Configuration that the administrator may have changed stays at an upgrade.
list() { # list FOLDER
    (cd "$1" && find . -type d -path '*/mayfly*' ! -path './var/*' | sed 's/^\.\(.*\)/%dir "\1"/' | sort)
    (cd "$1" && find . -mindepth 1 ! -type d | sed 's/^\.//' | sort) | while read -r file; do
        case $file in
            /etc/*) echo "%config(noreplace) \"$file\"" ;;
            /usr/share/doc/*) echo "%doc \"$file\"" ;;
            *) echo "\"$file\"" ;;
        esac
    done
}

make_rpm() { # make_rpm DEBIAN_ARCHITECTURE RPM_ARCHITECTURE
    local files=$place/$2
    rm -rf "$files"
    mkdir -p "$files"
    dpkg-deb --extract "$out/mayfly_${version}_$1.deb" "$files/server"
    dpkg-deb --extract "$out/mayfly-tools_${version}_$1.deb" "$files/tools"
    # Debian's own, and folders that are elsewhere.
    rm -rf "$files"/*/usr/share/lintian "$files"/*/usr/share/doc/*/changelog.Debian.gz "$files"/*/usr/share/doc/mayfly-tools \
        "$files/server/etc/apparmor.d" "$files/server/etc/needrestart" "$files/server/etc/mayfly/conf.d/.keep"
    [ ! -d "$files/server/lib" ] || { mkdir -p "$files/server/usr/lib" && cp -a "$files/server/lib/." "$files/server/usr/lib/" && rm -r "$files/server/lib"; }
    for name in vendor-completions; do
        mkdir -p "$files/server/usr/share/zsh/site-functions"
        mv "$files/server/usr/share/zsh/$name"/* "$files/server/usr/share/zsh/site-functions/"
        rmdir "$files/server/usr/share/zsh/$name"
    done
    list "$files/server" >"$files/server.list"
    list "$files/tools" >"$files/tools.list"
    find "$files" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
    # Programs are stripped already, and none is run.
    rpmbuild --quiet -bb --target "$2-linux" --nodeps --define "_topdir $place/top" --define "_rpmdir $out" --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
        --define "mayfly_version $version" --define "mayfly_files $files" --define 'debug_package %{nil}' --define '__os_install_post %{nil}' \
        --define '_buildhost reproducible' --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
        --define '_binary_payload w9.xzdio' --define '_build_id_links none' packaging/rpm/mayfly.spec >"$place/rpmbuild.log" 2>&1 ||
        { tail -30 "$place/rpmbuild.log" >&2; return 1; }
    for file in "$out"/mayfly*-"$version"-1."$2".rpm; do
        echo "$(basename "$file"): $(stat -c %s "$file") bytes"
    done
}

found=
for pair in amd64:x86_64 arm64:aarch64; do
    if [ -e "$out/mayfly_${version}_${pair%:*}.deb" ]; then
        found=yes
        make_rpm "${pair%:*}" "${pair#*:}"
    fi
done
[ -n "$found" ] || { echo "There is no mayfly_${version}_*.deb in $out: make package makes it." >&2; exit 1; }
