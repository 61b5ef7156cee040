#!/usr/bin/env bash
# scripts/pgo.sh [FEATURES]: builds the release with a profile of scripts/train.py (profile-guided
# optimization), lays its code out by a second profile (BOLT), and prints the path of the program,
# which has no symbols. It takes the time of two release builds and two minutes, and a run takes a
# quarter to a third less CPU. Needs python3, and the component llvm-tools of rustup; without rustup it makes the
# usual release. Without llvm-bolt (Debian's package bolt-19) the code stays where the linker put it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

features=${1:-}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
triple=$(rustc -vV | sed -n 's/^host: //p')
profdata=$(rustc --print sysroot)/lib/rustlib/$triple/bin/llvm-profdata
raw=$target/pgo/raw
profile=$target/pgo/conclave.profdata

# Newer versions read older files.
bolt=$(compgen -G '/usr/lib/llvm-*/bin/llvm-bolt' | sort -V | tail -n 1 || true)

say() { printf 'pgo: %s\n' "$*" >&2; }

# Prints the path of the program without symbols.
stripped() {
    mkdir -p "$target/pgo"
    strip --strip-unneeded -o "$target/pgo/conclave" "$1"
    echo "$target/pgo/conclave"
}

# Runs BOLT, whose many lines are shown only if it fails.
lay_out() {
    "$bolt" "$program" "$@" >"$target/pgo/bolt.log" 2>&1 || {
        cat "$target/pgo/bolt.log" >&2
        exit 1
    }
}

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
        stripped "$target/release/conclave"
        exit 0
    fi
    rustup component add llvm-tools >&2
fi
say "1 of 5: the program that counts what it executes"
build "-Cprofile-generate=$raw" counting
rm -rf "$raw"
say "2 of 5: the load"
scripts/train.py "$target/pgo/counting/$triple/release/conclave"
"$profdata" merge --output "$profile" "$raw"
say "3 of 5: the program"
program=$target/pgo/profiled/$triple/release/conclave
# BOLT moves functions, so it needs to know what refers to them.
build "-Cprofile-use=$profile ${bolt:+-Clink-arg=-Wl,--emit-relocs}" profiled
if [ -z "$bolt" ]; then
    say "no llvm-bolt: the code is not laid out"
    stripped "$program"
    exit 0
fi
say "4 of 5: the load, to count branches"
rm -f "$raw".branches*
lay_out -o "$target/pgo/branches" -instrument --instrumentation-file="$raw.branches" \
    --instrumentation-file-append-pid
scripts/train.py "$target/pgo/branches"
say "5 of 5: the layout"
# What a run executes lies together. The output of BOLT must not be stripped: GNU strip breaks it.
lay_out -o "$target/pgo/conclave" -data="$(echo "$raw".branches*)" -reorder-blocks=ext-tsp \
    -reorder-functions=cdsort -split-functions -split-eh -icf=1 -align-functions=16 \
    -use-old-text -align-text=4096 -remove-symtab
rm -f "$raw".branches* "$target/pgo/branches"
"$target/pgo/conclave" --version >&2
echo "$target/pgo/conclave"
