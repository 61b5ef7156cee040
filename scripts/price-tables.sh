#!/usr/bin/env bash
# Fetches the public price tables with which src/config/models.json is compared, and prints the path
# of the result: a JSON object of model id to prices by table, in US dollars per million tokens.
# The tables are in two Python packages with pinned versions. The repository has no copy of them.
set -euo pipefail

# When prices change, update these versions and src/config/models.json.
litellm='litellm==1.110.2'
genai='genai-prices==0.2.3'

folder="${XDG_CACHE_HOME:-$HOME/.cache}/conclave/price-tables"
file="$folder/${litellm/==/-}_${genai/==/-}.json"
[ -s "$file" ] && echo "$file" && exit 0

fail() {
    printf 'price-tables: %s\n' "$*" >&2
    exit 1
}

command -v python3 >/dev/null 2>&1 || fail "no python3 on the PATH: run 'make setup'"
mkdir -p "$folder"
scratch=$(mktemp -d "$folder/.fetch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
echo "price-tables: fetching $litellm and $genai" >&2
python3 -m venv "$scratch/venv" >&2 || fail "python3 cannot make a virtual environment: run 'make setup'"
pip() { "$scratch/venv/bin/python" -m pip "$@" --quiet --disable-pip-version-check >&2; }
pip install "$genai" || fail "pip could not install $genai; is there a network?"
# Only its table is needed, which is a file in the wheel.
pip download --no-deps --only-binary :all: --dest "$scratch" "$litellm" || fail "pip could not download $litellm"

"$scratch/venv/bin/python" - "$scratch" >"$scratch/tables.json" <<'PYTHON'
import datetime, json, pathlib, sys, zipfile
from genai_prices import data

tables = {}
(wheel,) = pathlib.Path(sys.argv[1]).glob("litellm-*.whl")
with zipfile.ZipFile(wheel) as archive:
    rows = json.loads(archive.read("litellm/model_prices_and_context_window_backup.json"))
million = lambda row, key: None if row.get(key) is None else round(row[key] * 1e6, 6)
for key, row in rows.items():
    if row.get("litellm_provider") not in ("anthropic", "openai", "xai") or "input_cost_per_token" not in row:
        continue
    tables.setdefault(key.removeprefix("xai/"), {})["litellm"] = {
        "input": million(row, "input_cost_per_token"),
        "output": million(row, "output_cost_per_token"),
        "cacheRead": million(row, "cache_read_input_token_cost"),
        "cacheWrite": million(row, "cache_creation_input_token_cost"),
        "retires": row.get("deprecation_date"),
    }


def current(prices):
    # Of several prices, the last one whose start date has passed applies.
    if not isinstance(prices, list):
        return prices
    today, found = datetime.date.today(), None
    for entry in prices:
        start = getattr(entry.constraint, "start_date", None)
        if start is None or start <= today:
            found = entry.prices
    return found


def base(price):
    return None if price is None else float(getattr(price, "base", price))


for provider in data.providers:
    if provider.id not in ("anthropic", "openai", "x-ai", "openrouter"):
        continue
    for model in provider.models:
        prices = current(model.prices)
        if prices is None:
            continue
        names = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
        values = [base(getattr(prices, name, None)) for name in names]
        row = dict(zip(("input", "output", "cacheRead", "cacheWrite"), values))
        tiers = getattr(getattr(prices, "input_mtok", None), "tiers", None) or []
        row["above"] = tiers[0].start if tiers else None
        row["longInput"] = float(tiers[0].price) if tiers else None
        tables.setdefault(model.id, {})["genai-prices"] = row
print(json.dumps(tables, indent=1, sort_keys=True))
PYTHON
mv -f "$scratch/tables.json" "$file"
echo "$file"
