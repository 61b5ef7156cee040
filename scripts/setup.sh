#!/usr/bin/env bash
# scripts/setup.sh [TARGET]: installs the missing system packages that TARGET needs.
#   build   a C compiler and linker (the default; `cargo build --release` needs only these and Rust)
#   demo    build, and for the in-process model: a C++ compiler, cmake, libclang; for the weights:
#           python3 with pip
#   test    demo, and PostgreSQL, qemu-user, npm and shellcheck for the checks
#   cluster PostgreSQL, Patroni, etcd and HAProxy for scripts/cluster.sh
#   peers   build, and for scripts/peers.py: the load generator hey, python3 with venv, and llvm-bolt
#   dist    build, and the tools that make and test the packages: dpkg-deb, python3,
#           systemd-analyze, mmdebstrap, llvm-bolt
set -euo pipefail

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

target=${1:-build}
case $target in
build | demo | test | cluster | peers | dist) ;;
*) fail "no target $target: one of build, demo, test, cluster, peers, dist" ;;
esac

has() { command -v "$1" >/dev/null 2>&1; }

has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    [ "$(uname -s)" = Darwin ] && return 0 # the Xcode command line tools have it
    compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null && return 0
    compgen -G '/usr/lib*/libclang*.so*' >/dev/null && return 0
    compgen -G '/usr/lib/*/libclang*.so*' >/dev/null && return 0
    compgen -G '/usr/local/lib/libclang*.so*' >/dev/null
}

# The missing Debian packages. Each function adds the needs of one purpose.
missing=()

needs_of_build() {
    has cc || missing+=(gcc libc6-dev)
}

needs_of_model() {
    has c++ || missing+=(g++)
    has make || missing+=(make)
    has cmake || missing+=(cmake)
    has_libclang || missing+=(libclang-dev)
    # bindgen runs clang to find the headers of the compiler.
    [ "$(uname -s)" = Darwin ] || has clang || missing+=(clang)
}

needs_of_python() {
    if ! has python3; then
        missing+=(python3 python3-pip python3-venv)
        return
    fi
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
}

needs_of_checks() {
    # The tests start their own server with these programs.
    has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
    # qemu-user emulates a CPU without vector instructions. It does not exist for macOS.
    [ "$(uname -s)" = Darwin ] || has qemu-x86_64 || missing+=(qemu-user)
    has npm || missing+=(nodejs npm)
    has shellcheck || missing+=(shellcheck)
}

needs_of_cluster() {
    has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
    has python3 || missing+=(python3)
    has patroni || missing+=(patroni python3-etcd)
    has etcd || missing+=(etcd-server)
    has haproxy || missing+=(haproxy)
    has ip || missing+=(iproute2)
    has curl || missing+=(curl)
}

needs_of_peers() {
    has hey || missing+=(hey)
}

# What lays the packages' code out. Not every system has it, and they are built without it too.
needs_of_layout() {
    compgen -G '/usr/lib/llvm-*/bin/llvm-bolt' >/dev/null && return 0
    if has apt-cache && apt-cache show bolt-19 >/dev/null 2>&1; then missing+=(bolt-19); fi
}

needs_of_dist() {
    has dpkg-deb || missing+=(dpkg)
    has objdump || missing+=(binutils)
    has python3 || missing+=(python3)
    # The test of the package checks the unit and creates a Debian system for the installation.
    has systemd-analyze || missing+=(systemd)
    has mmdebstrap || missing+=(mmdebstrap)
}

has cargo || fail "no cargo on the PATH: install Rust (https://rustup.rs), 1.94 or newer"
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -n 1)
present=$(rustc --version | cut -d ' ' -f 2)
[ "$(printf '%s\n%s\n' "$wanted" "$present" | sort -V | head -n 1)" = "$wanted" ] ||
    fail "Rust $present is too old: $wanted or newer is needed (rustup update stable)"

needs_of_build
case $target in
build) ;;
demo) needs_of_model && needs_of_python ;;
test) needs_of_model && needs_of_python && needs_of_checks ;;
cluster) needs_of_cluster ;;
peers) needs_of_python && needs_of_peers && needs_of_layout ;;
dist) needs_of_dist && needs_of_layout ;;
esac
if [ "${#missing[@]}" -eq 0 ]; then
    echo "setup: nothing is missing for $target"
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
    # Only the programs are needed. By default the package would also create and start a cluster.
    "${as_root[@]}" mkdir -p /etc/postgresql-common/createcluster.d
    echo 'create_main_cluster = false' |
        "${as_root[@]}" tee /etc/postgresql-common/createcluster.d/conclave-tests.conf >/dev/null
fi
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
    fail "apt-get could not install ${missing[*]}"
