#!/bin/sh
# Writes the folder debian/ of the packages; files that debhelper would put elsewhere by their names stay behind.
#
#   scripts/package/control.sh FOLDER
set -e
cd "$(dirname "$0")/../.."
cp -r packaging/debian "$1"
rm "$1/mayfly.apparmor" "$1/mayfly.needrestart" "$1/mayfly.sysusers" "$1/mayfly.tmpfiles"
scripts/package/changelog.py >"$1/changelog"
