#!/usr/bin/env bash
# Runs everything that CI runs, in one target folder. Each step is timed, and after a failed check
# the next one still runs. scripts/test.sh check: formatting and lints only. scripts/test.sh
# with-postgres NEXTEST: internal, for the step of the tests.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# The minimum versions. A newer version on the PATH is used.
nextest=0.9.143
deny=0.20.2

failed=()
times=()

step() {
    local name=$1 start=$SECONDS result=ok
    shift
    printf '\n== %s\n' "$name"
    "$@" || { result=FAILED && failed+=("$name"); }
    times+=("$(printf '%5d s  %-6s  %s' $((SECONDS - start)) "$result" "$name")")
    [ "$result" = ok ]
}

lints() { cargo clippy --locked --workspace --all-targets --features local,grammars -- -D warnings; }

# Lints the default build, which has no in-process model and no C++.
lints_without_model() { cargo clippy --locked -p conclave --lib -- -D warnings; }

dependencies() {
    local tool
    tool=$(scripts/tool.sh cargo-deny "$deny") && "$tool" --locked check bans licenses sources
}

scripts_and_images() { shellcheck --severity=warning scripts/*.sh packaging/debian/*inst packaging/debian/*rm && scripts/docker-lint.sh; }

# Runs the default build and the one with the in-process model on the oldest x86-64 CPU.
baseline() {
    local target=${CARGO_TARGET_DIR:-target}
    cargo build --locked --bin conclave && cp "$target/debug/conclave" "$target/debug/conclave-default" || return 1
    cargo build --locked --bin conclave --features local,grammars || return 1
    scripts/baseline.sh "$target/debug/conclave-default" "$target/debug/conclave"
}

docs() { RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps; }

summary=$(mktemp)
trap 'rm -f "$summary"' EXIT

# Runs all tests with a temporary PostgreSQL server, then the tests of the HTTP API again with their
# journals in PostgreSQL.
tests() {
    local tool
    tool=$(scripts/tool.sh cargo-nextest "$nextest") || return 1
    CONCLAVE_SCHEMATHESIS=$(scripts/schemathesis.sh) || return 1
    export CONCLAVE_SCHEMATHESIS
    CONCLAVE_PRICE_TABLES=$(scripts/price-tables.sh) || return 1
    export CONCLAVE_PRICE_TABLES
    CONCLAVE_TOKENIZER_COUNTS=$(scripts/tokenizers.sh) || return 1
    export CONCLAVE_TOKENIZER_COUNTS
    CONCLAVE_CODE_TOOLS=$(scripts/code-tools.sh) || return 1
    export CONCLAVE_CODE_TOOLS
    scripts/postgres.sh scripts/test.sh with-postgres "$tool" 2>&1 | tee "$summary"
}

with_postgres() {
    local result=0
    "$1" nextest run --locked --workspace --features local,grammars --no-fail-fast || result=1
    printf '\n-- once more, with the journals in PostgreSQL\n'
    CONCLAVE_TEST_STORE=postgres "$1" nextest run --locked --features local,grammars --no-fail-fast -E 'test(/^(act|chat|learned|plans|runs)::/)' || result=1
    return "$result"
}

# Prints `N passed, N failed` from the summary lines of nextest, such as
# `Summary [ 1.2s] 9 tests run: 7 passed (1 slow), 1 failed, 1 timed out`.
count() {
    sed 's/\x1b\[[0-9;]*m//g' "$summary" | awk '
        /^ *Summary \[/ {
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^passed/) passed += $(i - 1)
                if ($i ~ /^failed/ && $(i - 1) ~ /^[0-9]+$/) failed += $(i - 1)
                # Counts "1 exec failed" and "1 timed out" as failed.
                if (($i == "exec" || $i == "timed") && $(i - 1) ~ /^[0-9]+$/) failed += $(i - 1)
            }
        }
        END { printf "%d passed, %d failed\n", passed, failed }'
}

close() {
    printf '\n== Steps\n'
    printf '%s\n' "${times[@]}"
    if [ "${#failed[@]}" -gt 0 ]; then
        printf 'FAILED: %s\n' "$(IFS=,; echo "${failed[*]}" | sed 's/,/, /g')"
    fi
    local recorded=${CONCLAVE_EVAL:-../shared/eval}
    if [ "${1:-}" != quiet ]; then
        [ -f "$recorded/debate.dev.jsonl" ] ||
            printf 'Not checked: the floors of scoring. There are no recorded outputs in %s (CONCLAVE_EVAL).\n' "$recorded"
        count
    fi
    [ "${#failed[@]}" -eq 0 ]
    exit
}

if [ "${1:-}" = check ]; then
    step "formatting" cargo fmt --check
    step "lints" lints
    close quiet
fi

if [ "${1:-}" = with-postgres ]; then
    with_postgres "$2"
    exit
fi

# The other steps need these two.
step "system packages" scripts/setup.sh test || close
step "model weights" scripts/fetch-model.sh || close
step "formatting" cargo fmt --check
step "lints" lints
step "lints without the in-process model" lints_without_model
step "bans, licences, sources" dependencies
step "documentation" docs
step "scripts, Dockerfile, compose file" scripts_and_images
step "oldest CPU" baseline
step "tests" tests
close
