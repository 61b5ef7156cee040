#!/usr/bin/env bash
# scripts/fuzz.sh [SECONDS [TARGET...]]: runs each fuzzing target for SECONDS (60), one after the
# other. Needs a nightly toolchain and cargo-fuzz. Failing inputs go to fuzz/artifacts/. After the
# defect is repaired, add the input to fuzz/corpus/TARGET/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'fuzz: %s\n' "$*" >&2
    exit 1
}

cargo +nightly --version >/dev/null 2>&1 || fail "no nightly toolchain: rustup toolchain install nightly"
cargo +nightly fuzz --version >/dev/null 2>&1 || fail "no cargo-fuzz: cargo install --locked cargo-fuzz"

seconds=${1:-60}
shift || true
targets=("$@")
[ "${#targets[@]}" -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list)

failed=()
for target in "${targets[@]}"; do
    printf '\n== %s\n' "$target"
    # New corpus inputs are kept apart from the seeds.
    mkdir -p "fuzz/target/corpus/$target" "fuzz/artifacts/$target"
    cargo +nightly fuzz run --sanitizer none "$target" "fuzz/target/corpus/$target" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 || failed+=("$target")
done
[ "${#failed[@]}" -eq 0 ] || fail "found something in ${failed[*]}: see fuzz/artifacts/"
