#!/usr/bin/env python3
"""Measures the service beside other committee services, and prints one table of ratios.

Usage: scripts/peers.py CONCLAVE [--peers NAMES] [--scenarios NAMES] [--many CLIENTS] [--keep FILE]

The peers, their pinned requirements and the load are those of a separate folder: CONCLAVE_BENCH, or
../shared/bench. Needed there: mockllm/, run_load.py, run_peers.py, peers/. The mock LLM and the floor
(axum and reqwest, which store and score nothing) are built in target/peers; each Python peer gets a
virtual environment in the user's cache. All of it stays on the loopback.

The exit code is 1 if a run takes more than 1.5 ms of CPU (0 ms upstream, 64 clients), or if a request
failed. Standard library only.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = Path(os.environ.get("CONCLAVE_BENCH", ROOT / "../shared/bench")).resolve()
WORK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "peers"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "conclave/peers"
QUESTION = "What is the boiling point of water at sea level in Celsius?"
MAX_CPU_MS = 1.5
# The calls of a run of Conclave, of which one cross-checks, and those of a peer.
CALLS, PEER_CALLS = 6, 5


def built(name):
    """Builds a program of the folder and returns its path. The folder itself may be read-only."""
    source = WORK / name
    shutil.copytree(BENCH / name, source, dirs_exist_ok=True, copy_function=shutil.copyfile)
    shutil.copyfile(BENCH / "peers/contract.json", source.parent / "contract.json")
    print(f"peers: building {name}", file=sys.stderr)
    command = ["cargo", "build", "--release", "--quiet", "--manifest-path", source / "Cargo.toml"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CARGO_PROFILE")}
    environment["CARGO_TARGET_DIR"] = str(source / "target")
    subprocess.run(command, check=True, env=environment)
    return source / "target/release" / Path(name).name


def rules(folder):
    """Writes the mock's replies: a committee that agrees, so that a run makes all calls once."""
    scenario = json.loads((ROOT / "tests/it/data/scenarios/agreeing.json").read_text())
    plan = {**scenario["plan"], "demands": [], "continuation": None}
    labels = ["R1", "R2", "R3"]
    verdict = lambda own, unit: {
        "claim": f"{own}.{unit}",
        "supportedBy": [label for label in labels if label != own],
        "contradictedBy": [],
        "holds": "yes",
        "by": "calculation",
        "evidence": "Redone: it comes out the same.",
    }
    check = {
        "claims": [verdict(own, unit) for own in labels for unit in range(1, 5)],
        "sameAnswers": [labels],
        "parts": [{"part": "the question", "answeredBy": labels}],
        "reports": [],
    }
    replies = [("you decide who works on it", plan)]
    for agent in ("solver", "critic", "verifier"):
        report = {"agent": agent, **scenario["reports"][f"r1/{agent}"]}
        replies.append((f"Your role: {agent}", report))
    replies.append(("You compare the reports of a committee", check))
    replies.append(("Their reports are in; write the one reply", scenario["synthesis"]))
    path = Path(folder) / "rules.json"
    path.write_text(json.dumps([{"match": match, "reply": reply} for match, reply in replies]))
    return path


def config(folder, name, changes):
    """Writes the shipped config with changes, and returns its path."""
    shipped = json.loads((ROOT / "llm.config.json").read_text())
    for pointer, value in changes.items():
        *parents, key = pointer.split("/")
        at = shipped
        for parent in parents:
            at = at.setdefault(parent, {})
        at[key] = value
    path = Path(folder) / f"{name}.json"
    path.write_text(json.dumps(shipped))
    return path


def rows_of(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def measured(name, binary, folder, mock, changes, critical, scenarios, clients=1024):
    """Runs the scenarios against a service of this config, each with a journal of its own."""
    rows = []
    body = {"source": "http", "mode": "ask", "user": {"id": "u1", "name": "U"}, "context": {}, "message": QUESTION}
    for scenario in scenarios:
        print(f"peers: {name}, {scenario}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=folder) as journal:
            out = Path(journal) / "rows.jsonl"
            settings = {
                "CONCLAVE_BIND": "127.0.0.1:8123",
                "ANTHROPIC_BASE_URL": "{mock}",
                "ANTHROPIC_API_KEY": "mock",
                "CONCLAVE_CONFIG": config(folder, name.replace(" ", "-"), changes),
                "DATABASE_URL": f"sqlite://{journal}/conclave.db",
                "RUST_LOG": "warn",
            }
            command = [sys.executable, BENCH / "run_load.py", "--name", name, "--base", "http://127.0.0.1:8123"]
            command += ["--path", "/api/chat", "--health", "/health", "--body", json.dumps(body)]
            command += ["--mock", "http://127.0.0.1:9123", "--mock-bin", mock, "--rules", rules(folder)]
            command += ["--cmd", f"{binary} serve", "--cwd", journal, "--calls", str(CALLS)]
            command += ["--critical", str(critical), "--scenario", scenario, "--json", out]
            command += ["--slow-concurrency", str(clients)]
            for key, value in settings.items():
                command += ["--env", f"{key}={value}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            rows += rows_of(out)
    return rows


def peers(names, folder, mock, floor, scenarios):
    out = Path(folder) / "peers.jsonl"
    command = [sys.executable, BENCH / "run_peers.py", *names, "--venvs", CACHE, "--install", "--mock-bin", mock]
    command += ["--floor-bin", floor, "--scenario", ",".join(scenarios), "--logs", folder, "--json", out]
    print(f"peers: {', '.join(names)}", file=sys.stderr)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return rows_of(out)


def table(rows):
    """Returns the table, and the CPU of a run of Conclave in ms."""
    services = {}
    for row in rows:
        key = row["scenario"].split()[0]
        services.setdefault(row["target"].split(":")[0], {})[key] = row
    floor = services.get("rust-floor", {}).get("0ms", {})
    print("| service | CPU ms/run | x floor | x floor, a call | runs/s of the floor | added p50 / p99 ms | at once: runs/s | p50 s | errors | peak MB | idle MB | start ms |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, by in services.items():
        zero, slow, delayed, idle = (by.get(key, {}) for key in ("0ms", "1000ms", "100ms", "idle"))
        ratio = lambda key: zero[key] / floor[key] if key in zero and key in floor else None
        cpu = ratio("cpu_ms_per_run")
        calls = CALLS if name.startswith("conclave") else PEER_CALLS
        cells = [
            figure(zero.get("cpu_ms_per_run"), 2),
            figure(cpu, 1),
            figure(cpu and cpu * PEER_CALLS / calls, 1),
            figure(ratio("rps"), 2),
            f"{figure(delayed.get('added_p50_ms'), 1)} / {figure(delayed.get('added_p99_ms'), 1)}",
            figure(slow.get("rps"), 0),
            figure(slow.get("p50_ms") and slow["p50_ms"] / 1000, 2),
            figure(slow.get("errors"), 0),
            figure(slow.get("peak_rss_mb"), 0),
            figure(idle.get("idle_rss_mb"), 0),
            figure(idle.get("cold_start_s") and 1000 * idle["cold_start_s"], 0),
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    return services.get("conclave", {}).get("0ms", {}).get("cpu_ms_per_run")


def figure(value, digits):
    return "" if value is None else f"{value:.{digits}f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the built service")
    parser.add_argument("--peers", default="rust-floor,asyncio-aiohttp,langgraph", help="comma-separated")
    parser.add_argument("--scenarios", default="idle,latency,zero,slow", help="comma-separated")
    parser.add_argument("--many", type=int, metavar="CLIENTS", help="also this many clients at once, at 1 s upstream")
    parser.add_argument("--keep", metavar="FILE", help="append the rows here, one JSON object a line")
    options = parser.parse_args()
    if not (BENCH / "run_load.py").exists():
        print(f"\nPeers: no {BENCH}/run_load.py; CONCLAVE_BENCH names the folder of the load and the peers.")
        return 0
    if not shutil.which("hey"):
        print("\nPeers: the load generator hey is missing: scripts/setup.sh peers")
        return 1
    binary = Path(options.binary).resolve()
    scenarios = options.scenarios.split(",")
    mock, floor = built("mockllm"), built("peers/rust-floor")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # What runs one after the other is compared, so the floor comes first and next to the service.
        rows = peers(options.peers.split(","), folder, mock, floor, scenarios)
        rows += measured("conclave", binary, folder, mock, {}, 3, scenarios)
        if "latency" in scenarios:
            off = {"policy/speculate": False}
            rows += measured("conclave, speculate off", binary, folder, mock, off, 4, ["latency"])
        if options.many:
            limits = {"policy/limits/maxInFlight": 2 * options.many, "policy/limits/connections": 2 * options.many}
            limits |= {"providers/anthropic/maxConcurrent": 4096}
            limits |= {f"policy/deadlines/{mode}": 600 for mode in ("ask", "audit", "deep")}
            name = f"conclave, {options.many} clients"
            rows += measured(name, binary, folder, mock, limits, 3, ["slow"], options.many)
    if options.keep:
        with open(options.keep, "a") as kept:
            kept.writelines(json.dumps(row) + "\n" for row in rows)
    print("\nBeside other services; a run of the peers makes 5 calls, one of Conclave 6:\n")
    cpu = table(rows)
    failed = [row["target"] for row in rows if row["target"].startswith("conclave") and row.get("errors")]
    for target in failed:
        print(f"\nFAILED: requests of {target} failed")
    if cpu is not None and cpu > MAX_CPU_MS:
        print(f"\nFAILED: a run takes {cpu:.2f} ms of CPU, more than {MAX_CPU_MS}")
    return 1 if failed or (cpu is not None and cpu > MAX_CPU_MS) else 0


if __name__ == "__main__":
    sys.exit(main())
