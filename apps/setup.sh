#!/bin/sh
# Installs the Debian packages the application scenarios need, those that are
# missing and no others, and fetches axe-core. Starts no service: every scenario runs its own
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
need openssl openssl
need memcached memcached
need redis-server redis-server
need curl curl
need npm npm
need chromium chromium
need chromedriver chromium-driver
need /usr/share/fonts/truetype/dejavu fonts-dejavu-core
for package in mariadb-server php-fpm php-cli php-mysql php-xml php-gd php-curl php-mbstring wordpress dokuwiki \
    apache2 libapache2-mod-php mediawiki php-intl php-apcu php-sqlite3; do
    need_installed "$package"
done
# A WordPress without a theme shows nothing; which one there is differs by release.
ls -d /usr/share/wordpress/wp-content/themes/twenty*/ >/dev/null 2>&1 || missing="$missing wordpress-theme"

# axe-core, which looks for what keeps people from using a page (MPL-2.0): for browser_dashboard alone,
# and no part of the project. Its archive is the one that was looked at, or it is not unpacked.
AXE=4.14.1
AXE_SHA512=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
fetch_axe() {
    folder=$(cd "$(dirname "$0")/.." && pwd)/target/tools/axe
    [ -e "$folder/axe-$AXE.min.js" ] && return
    mkdir -p "$folder"
    archive=$folder/axe-core-$AXE.tgz
    echo "fetching axe-core $AXE"
    npm pack --silent --pack-destination "$folder" "axe-core@$AXE" >/dev/null || true
    if ! echo "$AXE_SHA512  $archive" | sha512sum -c --status 2>/dev/null; then
        rm -f "$archive"
        echo "axe-core $AXE was not fetched, or is another: nothing is looked at with it" >&2
        return
    fi
    tar -xzf "$archive" -C "$folder" --strip-components=1 package/axe.min.js
    mv "$folder/axe.min.js" "$folder/axe-$AXE.min.js"
    rm -f "$archive"
}

if [ -z "$missing" ]; then
    fetch_axe
    exit 0
fi
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
available=""
for package in $missing; do
    if [ "$package" = wordpress-theme ]; then
        package=$(apt-cache depends wordpress | sed -n 's/.*: *<\{0,1\}\(wordpress-theme-[a-z]*\).*/\1/p' | head -n 1)
    fi
    if apt-cache policy "$package" | grep -q 'Candidate: [^(]'; then
        available="$available $package"
    else
        # Ubuntu has no chromium package: only the browser scenarios need it.
        echo "not available here: $package" >&2
    fi
done
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends $available >/dev/null
fetch_axe
