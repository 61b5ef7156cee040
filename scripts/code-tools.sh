#!/usr/bin/env bash
# Builds `splice` and `magellan`, which the tests of tool plans run, and prints the folder of their
# programs. They are built once for each version, in the cache. Both are GPL programs: they are run
# as separate processes, and nothing of them is kept in this repository.
set -euo pipefail

splice=3.1.1
magellan=4.17.0

folder="${XDG_CACHE_HOME:-$HOME/.cache}/conclave/code-tools/splice-$splice-magellan-$magellan"

fail() {
    printf 'code-tools: %s\n' "$*" >&2
    exit 1
}

has() { [ "$("$folder/bin/$1" --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)" = "$2" ]; }

install() {
    has "$1" "$2" && return
    echo "code-tools: building $1 $2; this takes some minutes, once" >&2
    # A debug build takes a third of the time, and the tests have small projects. The cargo of a
    # surrounding build does not decide where it goes.
    env -u CARGO_TARGET_DIR -u CARGO_INCREMENTAL CARGO_PROFILE_DEV_DEBUG=false \
        cargo install --quiet --locked --debug --root "$folder" "$1@$2" >&2 ||
        fail "cargo could not build $1 $2; is there a network?"
    has "$1" "$2" || fail "$folder/bin/$1 does not print version $2"
}

install splice "$splice"
install magellan "$magellan"
echo "$folder/bin"
