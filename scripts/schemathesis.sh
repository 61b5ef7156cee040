#!/usr/bin/env bash
# Prints the path of schemathesis at the version in schemathesis.txt, which pins its dependencies as
# well. Installs it with pip into a separate virtual environment in the cache, so that its
# dependencies cannot conflict with those of other tools.
set -euo pipefail

pins="$(dirname "${BASH_SOURCE[0]}")/schemathesis.txt"
version=$(sed -n 's/^schemathesis==//p' "$pins")
venv="${XDG_CACHE_HOME:-$HOME/.cache}/conclave/schemathesis-$version"

fail() {
    printf 'schemathesis: %s\n' "$*" >&2
    exit 1
}

if ! "$venv/bin/schemathesis" --version 2>/dev/null | grep -qF "$version"; then
    command -v python3 >/dev/null 2>&1 || fail "no python3 to install it with: run 'scripts/setup.sh test'"
    echo "schemathesis: installing version $version into $venv" >&2
    rm -rf "$venv"
    python3 -m venv "$venv" >&2 || fail "python3 cannot make a virtual environment: run 'scripts/setup.sh test'"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$pins" >&2 ||
        fail "pip could not install it; is there a network?"
    "$venv/bin/schemathesis" --version 2>/dev/null | grep -qF "$version" || fail "$venv/bin/schemathesis does not run"
fi
echo "$venv/bin/schemathesis"
