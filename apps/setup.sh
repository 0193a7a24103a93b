#!/bin/sh
# Installs the Debian packages the application scenarios need, those that are
# missing and no others. Starts no service: every scenario runs its own
# MariaDB, PHP and browser in a temporary directory.
set -eu

missing=""
need() { # need COMMAND-OR-PATH PACKAGE...
    probe=$1
    shift
    case $probe in
    /*) [ -e "$probe" ] || missing="$missing $*" ;;
    *) PATH="$PATH:/usr/sbin:/sbin" command -v "$probe" >/dev/null 2>&1 || missing="$missing $*" ;;
    esac
}
need_installed() { # need_installed PACKAGE
    dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q ' installed$' || missing="$missing $1"
}

need nginx nginx-light
need mariadbd mariadb-server
need chromium chromium
need chromedriver chromium-driver
need /usr/share/fonts/truetype/dejavu fonts-dejavu-core
for package in php-fpm php-cli php-mysql php-xml php-gd php-curl php-mbstring \
    wordpress wordpress-theme-twentytwentythree dokuwiki; do
    need_installed "$package"
done

[ -n "$missing" ] || exit 0
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"

# Packages that bring a daemon must not start it. An administrator's own
# policy-rc.d is left as it is.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
    $as_root chmod 755 "$policy"
    trap '$as_root rm -f "$policy"' EXIT
fi
echo "installing:$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends $missing >/dev/null
