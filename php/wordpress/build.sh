#!/bin/sh
# Puts the plug-in together as it is installed: one folder, with the library in it.
#
#   php/wordpress/build.sh FOLDER      makes FOLDER/mayfly, for wp-content/plugins
#   php/wordpress/build.sh --must-use FOLDER      the same and FOLDER/mayfly.php, for wp-content/mu-plugins
set -eu
is_must_use=
[ "${1:-}" = --must-use ] && { is_must_use=yes; shift; }
[ $# -eq 1 ] || { echo "usage: build.sh [--must-use] FOLDER" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
library=$here/../library/src
mkdir -p "$1"
rm -rf "$1/mayfly"
mkdir "$1/mayfly"
cp "$here/mayfly/mayfly.php" "$here/mayfly/uninstall.php" "$1/mayfly/"

# The files with an interface, or (grep -L) those without.
sources() { # sources -l|-L
    find "$library"/*.php "$library/Http" "$library/Purge" "$here/mayfly/src" -name '*.php' -print0 |
        LC_ALL=C sort -z | xargs -0 grep "$1" -Z '^interface '
}
# Interfaces first: a class can be declared when its interfaces are.
{
    printf '<?php\n\n// Made by php/wordpress/build.sh from php/library/src and php/wordpress/mayfly/src.\n\n'
    printf 'declare(strict_types=1);\n'
    { sources -l; sources -L; } | xargs -0 sed -e '/^<?php$/d' -e '/^declare(strict_types=1);$/d' | cat -s
} >"$1/mayfly/classes.php"

if [ -n "$is_must_use" ]; then
    printf "<?php\n\n// WordPress loads the files of this folder, but not those of the folders in it.\nrequire __DIR__ . '/mayfly/mayfly.php';\n" >"$1/mayfly.php"
fi
