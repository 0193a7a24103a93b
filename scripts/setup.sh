#!/usr/bin/env bash
# Installs the Debian packages that a target of the Makefile needs.
#
#   scripts/setup.sh GROUP...      groups: build lint train run test bench instructions fuzz package
#                                 package-ARCH repository image trial
#
# Silent when everything is there. Uses sudo when not root. Services of newly
# installed packages are not started: the scripts here start their own.
set -euo pipefail

system=$(uname -s)
if [ "$system" != Linux ]; then
    echo "setup.sh: this is $system, and Mayfly runs on Linux alone; docs/questions.md lists the calls that it needs. Use a container or a virtual machine with Linux." >&2
    exit 1
fi

packages_of() {
    case $1 in
        build) echo gcc libc6-dev ;;
        lint)  echo python3 python3-pip ;;
        train) echo php-fpm python3 nghttp2-client openssl ;;
        run)   echo php-fpm php-sqlite3 curl ;;
        test)  echo mariadb-server-core mariadb-client-core postgresql memcached redis-server php-fpm php-sqlite3 php-cli php-curl php-mysql php-pgsql php-apcu curl python3 python3-httpx python3-h2 golang-go openssl sslscan prometheus tmux phpunit php-codesniffer php-nyholm-psr7 ;;
        bench) echo mariadb-server-core mariadb-client-core php-fpm php-mysql php-cli python3 wrk nginx util-linux varnish varnish-modules haproxy apache2-bin golang-go nghttp2-client openssl ;;
        instructions) echo php-fpm python3 valgrind ;;
        fuzz)  echo g++ php-cli ;;
        package) echo debhelper dpkg-dev fakeroot lintian binutils musl-tools python3 xz-utils ;;
        # Where packages for the other kind of machine are made.
        package-arm64) [ "$(uname -m)" = aarch64 ] || echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static ;;
        package-amd64) [ "$(uname -m)" = x86_64 ] || echo gcc-x86-64-linux-gnu libc6-dev-amd64-cross qemu-user-static ;;
        repository) echo apt-utils createrepo-c gpg rpm ;;
        image) echo buildah mmdebstrap python3 ;;
        trial) echo iproute2 mmdebstrap podman python3 python3-seccomp systemd ;;
        *)     echo "setup.sh: unknown group \"$1\" (build, lint, train, run, test, bench, instructions, fuzz, package, package-ARCH, repository, image, trial)" >&2; return 1 ;;
    esac
}

# The first php-fpm binary there is: Debian's carries its version in its name.
php_fpm() {
    local found
    for found in "$(command -v php-fpm)" /usr/sbin/php-fpm[0-9]* /usr/sbin/php-fpm; do
        [ -x "$found" ] && { echo "$found"; return; }
    done
    return 1
}

# A Go that can build Pebble and h2spec. Debian's may be older, and then it fetches a newer one as the module
# that Go's own releases are published as.
GO_LEAST=21
GO=1.24.10
go_program() {
    local found version
    for found in "$(command -v go)" /usr/local/go/bin/go; do
        [ -x "$found" ] || continue
        version=$("$found" env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
        [ "${version:-0}" -ge "$GO_LEAST" ] && { echo "$found"; return; }
    done
    fetched_go
}

fetched_go() {
    local tools machine sum archive
    tools=$(cd "$(dirname "$0")/.." && pwd)/target/tools
    [ -x "$tools/go/bin/go" ] && { echo "$tools/go/bin/go"; return; }
    case $(uname -m) in
        x86_64)  machine=amd64 sum=d986c81388382193b00ba1dc80ec64d3625e7fb2ae0e8d3da4dde83b9ab7d987 ;;
        aarch64) machine=arm64 sum=4d31d22f75fed99025f7b082319eabeb74106d11e343fc203b336ba2afdeb3a1 ;;
        *)       echo "There is no Go for a $(uname -m) to be fetched; install Go 1.$GO_LEAST or later." >&2; return 1 ;;
    esac
    mkdir -p "$tools"
    # In a folder without a module, so that no go.mod of another program has a say.
    archive=$(cd "$tools" && go mod download -json "golang.org/toolchain@v0.0.1-go$GO.linux-$machine" |
        sed -n 's/^\t"Zip": "\(.*\)",$/\1/p')
    echo "$sum  $archive" | sha256sum --check --quiet >&2
    rm -rf "$tools/go" "$tools/golang.org"
    python3 -m zipfile -e "$archive" "$tools"
    chmod +x "$tools"/golang.org/toolchain@*/bin/* "$tools"/golang.org/toolchain@*/pkg/tool/*/*
    mv "$tools"/golang.org/toolchain@* "$tools/go"
    rm -rf "$tools/golang.org"
    echo "$tools/go/bin/go"
}

# The issuer that the tests of certificates ask, and the name server that it asks.
PEBBLE=v2.10.1
install_pebble() {
    local tools go
    tools=$(cd "$(dirname "$0")/.." && pwd)/target/tools/pebble
    [ -x "$tools/pebble" ] && [ -x "$tools/pebble-challtestsrv" ] && return
    echo "Installing Pebble $PEBBLE"
    go=$(go_program)
    GOBIN=$tools "$go" install \
        "github.com/letsencrypt/pebble/v2/cmd/pebble@$PEBBLE" \
        "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@$PEBBLE"
}

# The foreign suite that the tests of HTTP/2 run.
H2SPEC=v2.2.1+incompatible
install_h2spec() {
    local tools go
    tools=$(cd "$(dirname "$0")/.." && pwd)/target/tools/h2spec
    [ -x "$tools/h2spec" ] && return
    echo "Installing h2spec $H2SPEC"
    go=$(go_program)
    GOBIN=$tools "$go" install "github.com/summerwind/h2spec/cmd/h2spec@$H2SPEC"
}

# Go's net/http as a client, for scripts/checks/clients.
build_go_client() {
    local root go
    root=$(cd "$(dirname "$0")/.." && pwd)
    [ "$root/target/tools/go_client" -nt "$root/scripts/checks/clients/go_client.go" ] && return
    echo "Building a client in Go"
    go=$(go_program)
    mkdir -p "$root/target/tools"
    "$go" build -o "$root/target/tools/go_client" "$root/scripts/checks/clients/go_client.go"
}

# The peer that also speaks HTTP/3: Debian 12 has no package of it.
CADDY=v2.10.2
install_caddy() {
    local tools go
    tools=$(cd "$(dirname "$0")/.." && pwd)/target/tools
    [ -x "$tools/caddy-$CADDY" ] && return
    echo "Installing Caddy $CADDY"
    go=$(go_program)
    GOBIN=$tools/caddy "$go" install "github.com/caddyserver/caddy/v2/cmd/caddy@$CADDY"
    mv "$tools/caddy/caddy" "$tools/caddy-$CADDY"
    rmdir "$tools/caddy"
}

# What is no package, for the groups that need it.
install_tools() {
    local group
    for group in "$@"; do
        case $group in
            test)  install_pebble; install_h2spec; build_go_client ;;
            bench) install_caddy ;;
        esac
    done
}

# Asks for the program, not the package: a PHP of one's own counts as well, and
# other distributions have other names.
is_installed() {
    case $1 in
        debhelper)   command -v dh >/dev/null ;;
        dpkg-dev)    command -v dpkg-buildpackage >/dev/null ;;
        musl-tools)  command -v musl-gcc >/dev/null ;;
        gcc-aarch64-linux-gnu) command -v aarch64-linux-gnu-gcc >/dev/null ;;
        gcc-x86-64-linux-gnu) command -v x86_64-linux-gnu-gcc >/dev/null ;;
        libc6-dev-arm64-cross) [ -e /usr/aarch64-linux-gnu/include/stdio.h ] ;;
        libc6-dev-amd64-cross) [ -e /usr/x86_64-linux-gnu/include/stdio.h ] ;;
        qemu-user-static) command -v qemu-aarch64-static >/dev/null ;;
        apt-utils)   command -v apt-ftparchive >/dev/null ;;
        rpm)         command -v rpmbuild >/dev/null ;;
        createrepo-c) command -v createrepo_c >/dev/null ;;
        binutils)    command -v objdump >/dev/null ;;
        libc6-dev)   [ -e /usr/include/stdio.h ] ;;
        nginx|haproxy) [ -x "/usr/sbin/$1" ] || command -v "$1" >/dev/null ;;
        varnish)     [ -x /usr/sbin/varnishd ] || command -v varnishd >/dev/null ;;
        varnish-modules) [ -n "$(find /usr/lib /usr/local/lib -name libvmod_xkey.so -print -quit 2>/dev/null)" ] ;;
        apache2-bin) [ -x /usr/sbin/apache2 ] || command -v httpd >/dev/null ;;
        python3-pip) python3 -m pip --version >/dev/null 2>&1 ;;
        golang-go)   command -v go >/dev/null || [ -x /usr/local/go/bin/go ] ;;
        php-cli)     command -v php >/dev/null ;;
        php-fpm)     php_fpm >/dev/null ;;
        php-codesniffer) command -v phpcs >/dev/null ;;
        php-nyholm-psr7) [ -e /usr/share/php/Nyholm/Psr7/autoload.php ] ;;
        php-curl)    php -m 2>/dev/null | grep -x curl >/dev/null ;;
        iproute2)    command -v ip >/dev/null ;;
        systemd)     command -v systemd-analyze >/dev/null ;;
        python3-httpx|python3-h2|python3-seccomp) /usr/bin/python3 -c "import ${1#python3-}" 2>/dev/null ;;
        php-sqlite3) local fpm; fpm=$(php_fpm) && "$fpm" -m 2>/dev/null | grep -x pdo_sqlite >/dev/null ;;
        php-mysql)   local fpm; fpm=$(php_fpm) && "$fpm" -m 2>/dev/null | grep -x pdo_mysql >/dev/null ;;
        php-pgsql)   local fpm; fpm=$(php_fpm) && "$fpm" -m 2>/dev/null | grep -x pdo_pgsql >/dev/null ;;
        php-apcu)    local fpm; fpm=$(php_fpm) && "$fpm" -m 2>/dev/null | grep -x apcu >/dev/null ;;
        xz-utils)    command -v xz >/dev/null ;;
        util-linux)  command -v taskset >/dev/null ;;
        mariadb-server-core) [ -x /usr/sbin/mariadbd ] || command -v mariadbd >/dev/null ;;
        postgresql)  command -v initdb >/dev/null || [ -n "$(find /usr/lib/postgresql -name initdb -print -quit 2>/dev/null)" ] ;;
        mariadb-client-core) command -v mariadb >/dev/null ;;
        *)           command -v "$1" >/dev/null ;;
    esac
}

if [ $# -eq 0 ]; then
    echo "usage: scripts/setup.sh GROUP...   (build, lint, train, run, test, bench, instructions, fuzz, package, package-ARCH, repository, image, trial)" >&2
    exit 2
fi

if ! command -v "${CARGO:-cargo}" >/dev/null; then
    echo "Rust is missing: install it from https://rustup.rs and try again." >&2
    exit 1
fi

missing=()
for group in "$@"; do
    packages=$(packages_of "$group")
    for package in $packages; do
        is_installed "$package" || missing+=("$package")
    done
done
if [ ${#missing[@]} -eq 0 ]; then
    install_tools "$@"
    exit
fi
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

if ! command -v apt-get >/dev/null; then
    echo "Missing here: ${missing[*]}" >&2
    echo "These are Debian's package names, and this machine has no apt-get." >&2
    echo "Install their equivalents and try again." >&2
    exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "Missing here: ${missing[*]}. Run as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

echo "Installing ${missing[*]}"

# Debian starts a service as soon as its package is there, unless policy-rc.d
# says no (exit status 101). A policy of the administrator's own is respected.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
    "${as_root[@]}" chmod 755 $policy
    trap '"${as_root[@]}" rm -f $policy' EXIT
fi

# Another program, such as unattended upgrades, may hold one of the locks of packages; it is waited for. Only the one of
# dpkg is waited for by apt-get itself.
LOCK_SECONDS=600
log=$(mktemp)
apt_get() {
    local until=$((SECONDS + LOCK_SECONDS))
    while ! "${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout=$LOCK_SECONDS "$@" >"$log" 2>&1; do
        grep -q "Could not get lock" "$log" && [ $SECONDS -lt $until ] || return 1
        sleep 2
    done
}

install() {
    apt_get install -y --no-install-recommends "${missing[@]}"
}
# Package lists may be missing (fresh container) or old; then fetch them once.
if ! install; then
    apt_get update || { cat "$log" >&2; exit 1; }
    install || { cat "$log" >&2; exit 1; }
fi
rm -f "$log"
install_tools "$@"
