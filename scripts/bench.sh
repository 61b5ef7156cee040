#!/usr/bin/env bash
# Prints the tables of `make bench`; docs/operations.md explains them. To print one table:
# scripts/bench.sh faults|act|decisions|load|growth|peers|cost|crash|cluster|scoring
# The tables growth and peers need the folder of the peers: CONCLAVE_BENCH or ../shared/bench.
# The scoring table needs recorded outputs, which are not in the repository. CONCLAVE_EVAL or
# ../shared/eval names their folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

nextest=0.9.143
table=${1:-all}

wanted() { [ "$table" = all ] || [ "$table" = "$1" ]; }

service() { cargo bench --locked --quiet --bench service -- "$1"; }

crash() {
    local tool
    tool=$(scripts/tool.sh cargo-nextest "$nextest")
    printf '\nCrashes: the service is killed at random moments (SIGKILL) and started again; every figure behind the third is to be 0.\n\n'
    printf '| what is killed | kills | runs accepted | lost | calls bought twice | without a reply | broken chains | over the cap |\n'
    printf '| -------------- | ----: | ------------: | ---: | -----------------: | --------------: | ------------: | -----------: |\n'
    scripts/postgres.sh "$tool" nextest run --locked --profile chaos --features long-chaos --no-capture \
        -E 'test(kills_at_random) | test(two_replicas) | test(a_kill_at_any_moment)' 2>&1 |
        tee "$log" | grep -E '^\| (one|two) ' || { tail -n 40 "$log" && return 1; }
    grep -q ' 3 passed' "$log" || { tail -n 40 "$log" && return 1; }
}

# Needs root: each node of the cluster is a network namespace.
cluster() {
    if [ "$(uname -s)" != Linux ] || [ "$(id -u)" -ne 0 ]; then
        printf '\nCluster: skipped, network namespaces need root on Linux.\n'
        return
    fi
    scripts/setup.sh cluster >/dev/null
    cargo build --locked --release --quiet --bin conclave
    scripts/cluster-test.py "${CARGO_TARGET_DIR:-target}/release/conclave"
    scripts/cluster-test.py "${CARGO_TARGET_DIR:-target}/release/conclave" --growth
}

growth() {
    cargo build --locked --release --quiet --bin conclave
    scripts/growth.py "${CARGO_TARGET_DIR:-target}/release/conclave"
}

# Measures the program as the packages have it. Fails if a run takes too much CPU.
peers() {
    scripts/setup.sh peers >/dev/null
    local binary result=0
    binary=$(scripts/pgo.sh)
    scripts/peers.py "$binary" --many 10000 || result=1
    printf '\nSize of the program, without symbols: %s MB\n' "$(du -m "$binary" | cut -f 1)"
    return "$result"
}

# Measures the scoring engine on recorded outputs. docs/scoring.md quotes the figures.
scoring() {
    local data=${CONCLAVE_EVAL:-../shared/eval} predictions task rows
    if [ ! -f "$data/debate.dev.jsonl" ]; then
        printf '\nScoring: no recorded outputs in %s, set CONCLAVE_EVAL.\n' "$data"
        return
    fi
    cargo build --locked --release --quiet --bin conclave --features grammars
    predictions=$(mktemp)
    for task in debate checked select contradiction refusal; do
        rows=$data/${task/checked/debate}.dev.jsonl
        printf '\nScoring, %s:\n\n' "$task"
        python3 scripts/eval/measure.py "$task" "$rows" "$predictions" \
            --conclave "${CARGO_TARGET_DIR:-target}/release/conclave score -"
        python3 "$data/evaluate.py" "${task/checked/debate}" "$rows" "$predictions"
    done
    rm -f "$predictions"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

if wanted faults; then service faults; fi
if wanted crash; then crash; fi
if wanted act; then service act; fi
if wanted decisions; then service decisions; fi
if wanted load; then service load; fi
if wanted cluster; then cluster; fi
if wanted cost; then cargo bench --locked --quiet --bench cost; fi
if wanted scoring; then scoring; fi
if wanted growth; then growth; fi
# Last, because it fails if a run takes too much CPU.
if wanted peers; then peers; fi
