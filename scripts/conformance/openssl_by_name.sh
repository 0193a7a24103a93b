#!/bin/sh
# Mayfly for nginx-tests: files that look for OpenSSL by name, and skip themselves without it, find it in `-V`. All
# else is the program's. The suite starts it without arguments of ours, so MAYFLY names the program.
program=${MAYFLY:-$(dirname "$0")/../../target/debug/mayfly}
if [ "$*" = "-V" ]; then
    "$program" -V 2>&1 | sed '1a built with OpenSSL 3.0.0'
    exit 0
fi
exec "$program" "$@"
