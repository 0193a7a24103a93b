#!/usr/bin/env bash
# Serves the demo site until Ctrl-C.
#
#   scripts/run-demo.sh BINARY
#
# PORT    where to listen on 127.0.0.1, instead of 8080
# STATE   folder for the site, its data and the logs, instead of target/demo
# CONFIG  configuration instead of demo/nginx.conf
set -euo pipefail
binary=$(realpath "$1")
cd "$(dirname "$0")/.."
port=${PORT:-8080}
state=${STATE:-${CARGO_TARGET_DIR:-target}/demo}

if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    echo "Port $port is taken. Choose another: make run PORT=8081" >&2
    exit 1
fi

# Root serves as nobody in particular, which then must be able to read what there
# is to serve: a checkout below /root is not.
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    as_user=(setpriv --reuid www-data --regid www-data --clear-groups)
    mkdir -p "$state"
    "${as_user[@]}" test -x "$state" || state=/tmp/mayfly-demo
fi

mkdir -p "$state/data"
cp -rT demo/site "$state/site"
cp -rT demo/news "$state/news"
mkdir -p "$state/library"
cp -rT php/library/src "$state/library/src"
cp php/library/autoload.php "$state/library/"
sed "s/127\.0\.0\.1:8080/127.0.0.1:$port/" "${CONFIG:-demo/nginx.conf}" >"$state/nginx.conf"
if [ ${#as_user[@]} -gt 0 ]; then
    cp "$binary" "$state/$(basename "$binary")"
    binary=$state/$(basename "$binary")
    chown -R www-data: "$state"
fi

# The state folder is also the prefix: relative paths in the configuration begin there.
state=$(realpath "$state")
"${as_user[@]}" "$(realpath "$binary")" -p "$state" -e error.log -c "$state/nginx.conf" &
server=$!
trap 'kill -TERM $server 2>/dev/null; wait $server || true; exit 0' INT TERM

for _ in $(seq 100); do
    kill -0 $server 2>/dev/null || { wait $server; exit $?; }
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    sleep 0.1
done

url=http://127.0.0.1:$port/
cat <<END

  The demo site:   $url
  See it work:     for i in 1 2 3; do curl -si $url | grep -i x-cache; done
                   MISS twice, then HIT: the third page came from memory.
  PHP ran so far:  wc -c <$state/data/executions
  Configuration, logs and data are in $state

  Write a comment: everybody sees it at once, and the foot of each page says why.
  Ctrl-C stops it.

END
wait $server
