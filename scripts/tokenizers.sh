#!/usr/bin/env bash
# Fetches public tokenizers that the input bound of src/committee/money/budget.rs is compared with, runs them over a corpus, and
# prints the path of the file with the counts: JSON Lines of kind, text and tokens by tokenizer.
# They are in Python packages, pinned here. Nothing of them is kept in this repository.
set -euo pipefail

# litellm ships the vocabularies of five tokenizers in its wheel; the other two packages run them.
litellm='litellm==1.110.2'
tiktoken='tiktoken==0.14.0'
tokenizers='tokenizers==0.23.3'

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder="${XDG_CACHE_HOME:-$HOME/.cache}/conclave/tokenizers"
# A change of this script or of a prompt makes another corpus.
version=$(cat scripts/tokenizers.sh prompts/*.md | sha256sum | cut -c1-16)
file="$folder/counts-$version.jsonl"
[ -s "$file" ] && echo "$file" && exit 0

fail() {
    printf 'tokenizers: %s\n' "$*" >&2
    exit 1
}

command -v python3 >/dev/null 2>&1 || fail "no python3 on the PATH: run 'make setup'"
mkdir -p "$folder"
scratch=$(mktemp -d "$folder/.fetch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
echo "tokenizers: fetching $litellm, $tiktoken and $tokenizers" >&2
python3 -m venv "$scratch/venv" >&2 || fail "python3 cannot make a virtual environment: run 'make setup'"
pip() { "$scratch/venv/bin/python" -m pip "$@" --quiet --disable-pip-version-check >&2; }
pip install "$tiktoken" "$tokenizers" || fail "pip could not install $tiktoken and $tokenizers; is there a network?"
# Only its vocabularies are wanted, which stand in the wheel.
pip download --no-deps --only-binary :all: --dest "$scratch" "$litellm" || fail "pip could not download $litellm"

"$scratch/venv/bin/python" - "$scratch" >"$scratch/counts.jsonl" <<'PYTHON'
import base64, glob, json, os, pathlib, random, sys, unicodedata, zipfile

scratch = pathlib.Path(sys.argv[1])
inside = "litellm/litellm_core_utils/tokenizers/"
(wheel,) = scratch.glob("litellm-*.whl")
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if name.startswith(inside):
            archive.extract(name, scratch)
# The files in it have the names of tiktoken's own cache, which checks their hashes.
os.environ["TIKTOKEN_CACHE_DIR"] = str(scratch / inside)
import tiktoken
from tokenizers import Tokenizer

counters = {}
for name in ("p50k_base", "cl100k_base", "o200k_base"):
    counters[name] = lambda text, encoding=tiktoken.get_encoding(name): len(encoding.encode_ordinary(text))
for name in ("anthropic", "deepseek"):
    tokenizer = Tokenizer.from_file(str(scratch / inside / f"{name}_tokenizer.json"))
    counters[name] = lambda text, t=tokenizer: len(t.encode(text, add_special_tokens=False).ids)


def write(kind, text):
    counts = {name: count(text) for name, count in counters.items()}
    print(json.dumps({"kind": kind, "text": text, "counts": counts}))


draw = random.Random(12)
latin, upper, digits = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
some = lambda signs, length: "".join(draw.choice(signs) for _ in range(length))
span = lambda first, last: [chr(c) for c in range(first, last + 1) if unicodedata.category(chr(c))[0] in "LMNPS"]
words = lambda signs, count: " ".join(some(signs, draw.randint(1, 12)) for _ in range(count))

# Every character on its own kind of line, 16 together, and alone where a tokenizer makes more tokens than bytes of it.
every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) not in ("Cn", "Co")]
for start in range(0, len(every), 16):
    write("every character", "".join(every[start : start + 16]))
for sign in every:
    if len(unicodedata.normalize("NFKC", sign).encode()) > len(sign.encode()):
        write("longer when normalized", sign)

scripts = {
    "latin with diacritics": span(0xC0, 0x24F), "IPA": span(0x250, 0x2AF), "greek": span(0x370, 0x3FF),
    "cyrillic": span(0x400, 0x52F), "armenian": span(0x531, 0x58A), "hebrew with points": span(0x591, 0x5F4),
    "arabic": span(0x600, 0x6FF), "arabic forms": span(0xFB50, 0xFDFF), "syriac": span(0x700, 0x74F),
    "devanagari": span(0x900, 0x97F), "tamil": span(0xB80, 0xBFF), "thai": span(0xE00, 0xE5B),
    "tibetan": span(0xF00, 0xFDA), "georgian": span(0x10A0, 0x10FF), "ethiopic": span(0x1200, 0x139F),
    "cherokee": span(0x13A0, 0x13FF), "kana": span(0x3040, 0x30FF), "CJK": span(0x4E00, 0x9FFF),
    "rare CJK": span(0x20000, 0x2A6DF), "hangul": span(0xAC00, 0xD7A3), "jamo": span(0x1100, 0x11FF),
    "full width": span(0xFF01, 0xFFEF), "mathematical": span(0x1D400, 0x1D7FF), "emoji": span(0x1F300, 0x1FAFF),
    "cuneiform": span(0x12000, 0x123FF), "symbols": span(0x2000, 0x2BFF),
}
marks = span(0x300, 0x36F)
for kind, signs in scripts.items():
    for _ in range(4):
        write(kind, words(signs, 60))
        write(kind + ", decomposed", unicodedata.normalize("NFD", words(signs, 60)))
        write(kind + " among ASCII", "".join(draw.choice(signs) + some(latin + " ", 2) for _ in range(150)))
people = ["\U0001F468", "\U0001F469", "\U0001F467", "\U0001F3FD", "\u200d", "\ufe0f", "\U0001F1E9", "\U0001F1EA"]
for _ in range(8):
    write("emoji sequences", some(people, 150))
    write("combining marks", "".join(draw.choice(latin) + some(marks, draw.randint(1, 6)) for _ in range(80)))
    write("lower-case noise", words(latin, 80))
    write("rare capitals", words(upper, 80))
    write("mixed case", words(latin + upper, 80))
    write("rare letters", words("qxzjvkwQXZJVKW", 80))
    write("digits", words(digits, 80))
    write("digits without a gap", some(digits, 500))
    write("punctuation", some("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", 500))
    write("whitespace runs", some(" \t\n\r\u00a0\u2003\u200b", 500))
    write("control characters", some([chr(c) for c in [*range(32), *range(127, 160)]], 500))
    write("every ASCII character", some([chr(c) for c in range(128)], 500))
    write("base64", base64.b64encode(draw.randbytes(400)).decode())
    write("hexadecimal", draw.randbytes(250).hex())
    write("random bytes", draw.randbytes(600).decode("utf-8", "replace"))
    write("random latin-1", draw.randbytes(600).decode("latin-1"))
    write("every plane", some(every, 200))
for length in (1, 2, 3, 7, 31, 500):
    for sign in " \n\ta-=1é日":
        write("repetition", sign * length)
for first in latin:
    write("every three letters", " ".join(first + second + third for second in latin for third in latin))
for path in sorted([*glob.glob("prompts/*.md"), "scripts/tokenizers.sh"]):
    text = pathlib.Path(path).read_text()
    write("prompt" if path.startswith("prompts") else "code", text)
PYTHON
mv -f "$scratch/counts.jsonl" "$file"
echo "$file"
