#!/usr/bin/env bash
# scripts/baseline.sh DEFAULT LOCAL: checks in an emulator that the program runs on the oldest
# x86-64 CPU. DEFAULT is the binary of the default build, LOCAL the one with the feature `local`.
# Both must start, print their version and serve. The in-process model of LOCAL must refuse to load,
# with a message that names the missing CPU features. Installs nothing: `scripts/setup.sh test`
# installs qemu-user.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A CPU of 2003 with SSE2 and nothing newer. The CPU models of qemu with real names have more.
cpu=qemu64,-sse3,-cx16

fail() {
    printf 'baseline: %s\n' "$*" >&2
    exit 1
}

if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
    echo "baseline: skipped, this is not Linux on x86-64"
    exit 0
fi
[ "$#" -eq 2 ] || fail "usage: scripts/baseline.sh DEFAULT LOCAL"
command -v qemu-x86_64 >/dev/null || fail "no qemu-x86_64 on the PATH: run 'scripts/setup.sh test'"

folder=$(mktemp -d)
service=
cleanup() {
    [ -z "$service" ] || kill -KILL "$service" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT

# Writes no core file when a program crashes.
ulimit -c 0
old() { qemu-x86_64 -cpu "$cpu" "$@"; }

# The emulator must fail where the CPU would, or the other checks prove nothing.
printf 'int main(void) { __asm__ volatile("vpaddd %%ymm0, %%ymm0, %%ymm0"); return 0; }\n' >"$folder/avx2.c"
cc -o "$folder/avx2" "$folder/avx2.c"
qemu-x86_64 -cpu max "$folder/avx2" || fail "this qemu cannot run AVX2 at all, so that the check would say nothing"
if (old "$folder/avx2") >/dev/null 2>&1; then
    fail "this qemu runs AVX2 on a CPU without it, so that the check would say nothing"
fi
echo "baseline: an AVX2 program dies on $cpu, as it must"

# Starts `conclave serve` on the old CPU and asks /health.
serves() {
    local binary=$1 name=$2 log="$folder/$2.log" url=
    mkdir "$folder/$name"
    : >"$log"
    (
        cd "$folder/$name"
        exec env -i PATH="$PATH" CONCLAVE_CONFIG="$root/llm.config.json" CONCLAVE_BIND=127.0.0.1:0 LOG_FORMAT=text \
            ANTHROPIC_API_KEY=unused DATABASE_URL=sqlite://conclave.db qemu-x86_64 -cpu "$cpu" "$binary" serve
    ) >"$log" 2>&1 &
    service=$!
    for _ in $(seq 120); do
        url=$(sed -n 's/.*listening on \(http:\/\/[0-9.:]*\).*/\1/p' "$log" | head -n 1)
        [ -z "$url" ] || break
        kill -0 "$service" 2>/dev/null || fail "$name: the service ended: $(cat "$log")"
        sleep 0.5
    done
    [ -n "$url" ] || fail "$name: the service did not come up in 60 s: $(cat "$log")"
    # Runs the client on the old CPU as well, because it has separate code.
    old "$binary" health --server "$url" >/dev/null || fail "$name: /health did not answer 200"
    old "$binary" health --ready --server "$url" >/dev/null || fail "$name: /ready did not answer 200"
    kill -TERM "$service"
    wait "$service" || fail "$name: the service did not stop cleanly: $(cat "$log")"
    service=
}

root=$PWD
for name in default local; do
    binary=$(realpath "$1") && shift
    version=$(old "$binary" --version) || fail "$name: --version died"
    serves "$binary" "$name"
    # Runs parsers and hashes: SQLite, tree-sitter, ring and the regular expressions have vector
    # code.
    (cd "$folder/$name" && old "$binary" act "roll 2d6+3" >/dev/null) || fail "$name: act died"
    echo "baseline: $name: $version starts, serves /health and /ready, acts"
done

# After the loop $binary is LOCAL. The weights may be missing, because the CPU is checked first.
code=0
said=$(cd "$folder/local" && env CONCLAVE_CONFIG="$root/llm.config.local.json" LOCAL_MODEL_PATH=absent.gguf \
    qemu-x86_64 -cpu "$cpu" "$binary" ask --new "Is 7 prime?" 2>&1) || code=$?
[ "$code" -eq 3 ] || fail "local: the model ended with $code instead of a refusal: $said"
for word in sse4.2 avx avx2 fma f16c bmi2; do
    [[ "$said" =~ (lacks|,)\ $word(,|\ ) ]] || fail "local: the refusal does not name $word: $said"
done
echo "baseline: local: $said"

# The kernels must use the vector instructions that the refusal names.
symbol=$(nm "$binary" | awk '$3 == "ggml_vec_dot_q4_0_q8_0" { print $3 }')
[ -n "$symbol" ] || fail "local: the kernel ggml_vec_dot_q4_0_q8_0 is not in $binary"
wide=$(objdump -d --no-show-raw-insn --disassemble="$symbol" "$binary" | grep -c '%ymm') || true
[ "$wide" -gt 0 ] || fail "local: the kernel $symbol uses no AVX register"
echo "baseline: local: $symbol uses AVX registers in $wide instructions"
