#!/usr/bin/env bash
# scripts/pgo.sh [FEATURES]: builds the release with a profile of scripts/train.py (profile-guided
# optimization) and prints the path of the program. It takes the time of two release builds, and a
# run takes about a fifth less CPU. Needs python3, and the component llvm-tools of rustup; without
# rustup it makes the usual release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

features=${1:-}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
triple=$(rustc -vV | sed -n 's/^host: //p')
profdata=$(rustc --print sysroot)/lib/rustlib/$triple/bin/llvm-profdata
raw=$target/pgo/raw
profile=$target/pgo/conclave.profdata

say() { printf 'pgo: %s\n' "$*" >&2; }

# Builds with flags of rustc, in a folder of its own. With a target, they are not those of build
# scripts and macros.
build() {
    RUSTFLAGS=$1 cargo build --locked --release --bin conclave --features "$features" \
        --target "$triple" --target-dir "$target/pgo/$2" >&2
}

if [ ! -x "$profdata" ]; then
    if ! command -v rustup >/dev/null 2>&1; then
        say "no rustup, which would provide llvm-profdata: this is the usual release, without a profile"
        cargo build --locked --release --bin conclave --features "$features" >&2
        echo "$target/release/conclave"
        exit 0
    fi
    rustup component add llvm-tools >&2
fi
say "1 of 3: the program that counts what it executes"
build "-Cprofile-generate=$raw" counting
rm -rf "$raw"
say "2 of 3: the load"
scripts/train.py "$target/pgo/counting/$triple/release/conclave"
"$profdata" merge --output "$profile" "$raw"
say "3 of 3: the program"
build "-Cprofile-use=$profile" profiled
echo "$target/pgo/profiled/$triple/release/conclave"
