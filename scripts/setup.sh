#!/usr/bin/env bash
# Installs what the build needs from the system: a C++ compiler, cmake and libclang (for llama.cpp), python3 with pip
# and venv (for the weights and the check tools), and PostgreSQL (for the tests). Does nothing when all is there.
set -euo pipefail

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    [ "$(uname -s)" = Darwin ] && return 0 # the Xcode command line tools have it
    compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null && return 0
    compgen -G '/usr/lib*/libclang*.so*' >/dev/null && return 0
    compgen -G '/usr/lib/*/libclang*.so*' >/dev/null && return 0
    compgen -G '/usr/local/lib/libclang*.so*' >/dev/null
}

has cargo || fail "no cargo on the PATH: install Rust (https://rustup.rs), 1.94 or newer"
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -n 1)
present=$(rustc --version | cut -d ' ' -f 2)
[ "$(printf '%s\n%s\n' "$wanted" "$present" | sort -V | head -n 1)" = "$wanted" ] ||
    fail "Rust $present is too old: $wanted or newer is needed (rustup update stable)"

missing=()
has c++ || missing+=(g++)
has make || missing+=(make)
has cmake || missing+=(cmake)
has_libclang || missing+=(libclang-dev)
# bindgen finds the compiler's own headers by asking clang where they are.
[ "$(uname -s)" = Darwin ] || has clang || missing+=(clang)
if ! has python3; then
    missing+=(python3 python3-pip python3-venv)
else
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
fi
# The tests start a server of their own from its programs.
has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
if [ "${#missing[@]}" -eq 0 ]; then
    echo "setup: nothing is missing"
    exit 0
fi

has apt-get || fail "missing: ${missing[*]} (Debian's names). Install them with your system's package manager."
if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif has sudo; then
    as_root=(sudo)
else
    fail "missing: ${missing[*]}. Neither root nor sudo here; ask for: apt-get install ${missing[*]}"
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq || fail "apt-get update failed; is there a network?"
if [[ " ${missing[*]} " == *" postgresql "* ]] && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    # Only the programs are wanted: without this the package would also make a cluster and start it.
    "${as_root[@]}" mkdir -p /etc/postgresql-common/createcluster.d
    echo 'create_main_cluster = false' |
        "${as_root[@]}" tee /etc/postgresql-common/createcluster.d/conclave-tests.conf >/dev/null
fi
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
    fail "apt-get could not install ${missing[*]}"
