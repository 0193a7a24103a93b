#!/usr/bin/env bash
# Unpacks a Debian package of another architecture into a folder, without installing it.
#
#   scripts/package/foreign_package.sh ARCHITECTURE PACKAGE FOLDER
#
# It comes from where apt of this machine gets its packages; the lists of that architecture are fetched to a folder that
# is removed afterwards, so that apt of this machine stays as it is.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: scripts/package/foreign_package.sh ARCHITECTURE PACKAGE FOLDER" >&2; exit 2; }
architecture=$1 package=$2 folder=$3
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/lists/partial" "$folder"
printf 'APT::Architectures {"%s";"%s";};\nAPT::Sandbox::User "root";\nDir::State::Lists "%s";\nDir::Cache "%s";\n' \
    "$(dpkg --print-architecture)" "$architecture" "$place/lists" "$place" >"$place/apt.conf"
export APT_CONFIG=$place/apt.conf
apt-get --quiet=2 update
(cd "$place" && apt-get --quiet=2 download "$package:$architecture")
dpkg-deb --extract "$place"/"$package"_*.deb "$folder"
