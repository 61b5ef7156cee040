#!/usr/bin/env python3
"""Measures how fast the service is with many stored runs, as a ratio to few.

Usage: scripts/growth.py CONCLAVE [--runs N] [--entries-every N]

Makes a few runs with a mock LLM, multiplies their rows in the SQLite database to 1,000 and to N runs
of 1,000 users in a year, and times start-up, lists, one run and new runs with daily limits on both.
Only every 50th copied run has its entries, because a million runs with them take some 17 GB.
The mock LLM and its replies are those of scripts/peers.py, which needs a separate folder: see there.
Standard library only.
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import peers

FEW = 1_000
USERS = 1_000
YEAR_MS = 365 * 24 * 3_600_000
BASE = "http://127.0.0.1:8123"
LIMITS = {"dailyUsd": 1e6, "userDailyUsd": 1e5, "guildDailyUsd": 1e5}


def request(path, body=None):
    """Returns the reply and the time that it took, in ms."""
    data = json.dumps(body).encode() if body else None
    asked = urllib.request.Request(BASE + path, data, {"content-type": "application/json"})
    start = time.perf_counter()
    with urllib.request.urlopen(asked, timeout=120) as reply:
        text = reply.read()
    return json.loads(text or b"null"), 1000 * (time.perf_counter() - start)


def chat(user):
    return {
        "source": "http",
        "mode": "ask",
        "user": {"id": user, "name": "U"},
        "context": {"guildId": "g1", "channelId": "c1"},
        "message": peers.QUESTION,
    }


class Service:
    """A running service; `ready_ms` is the time to its first healthy answer."""

    def __init__(self, binary, folder, database):
        limits = {f"policy/limits/{name}": most for name, most in LIMITS.items()}
        settings = {
            "CONCLAVE_BIND": "127.0.0.1:8123",
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:9123",
            "ANTHROPIC_API_KEY": "mock",
            "CONCLAVE_CONFIG": str(peers.config(folder, "growth", limits)),
            "DATABASE_URL": f"sqlite://{database}",
            "RUST_LOG": "warn",
        }
        start = time.perf_counter()
        self.process = subprocess.Popen([binary, "serve"], cwd=folder, env={**os.environ, **settings})
        while True:
            try:
                request("/health")
                break
            except OSError:
                if self.process.poll() is not None or time.perf_counter() - start > 120:
                    sys.exit("growth: the service did not start")
                time.sleep(0.001)
        self.ready_ms = 1000 * (time.perf_counter() - start)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)


def multiplied(database, runs, entries_every):
    """Copies the rows of the runs until there are so many."""
    db = sqlite3.connect(database)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA cache_size = -500000")
    columns = [row[1] for row in db.execute("PRAGMA table_info(runs)")]
    base = [dict(zip(columns, row)) for row in db.execute("SELECT * FROM runs WHERE state = 'answered'")]
    entries = {}
    for run in base:
        found = db.execute("SELECT seq, at_ms, key, body, prev, hash, packed FROM entries WHERE run = ?", (run["id"],))
        entries[run["id"]] = found.fetchall()
    missing = runs - len(base)
    newest = min(run["accepted_ms"] for run in base)
    marks = ", ".join("?" * len(columns))
    with db:
        for number in range(missing):
            run = base[number % len(base)]
            at = newest - YEAR_MS + YEAR_MS * number // missing
            # The form of a UUID of version 7, whose first 48 bits are the time.
            time_hex = f"{at:012x}"
            identifier = f"{time_hex[:8]}-{time_hex[8:]}-7{number % 4096:03x}-8000-{number:012x}"
            copy = {**run, "id": identifier, "user_id": f"u{number % USERS}", "idempotency_key": None}
            copy["accepted_ms"], copy["finished_ms"] = at, at + 10
            db.execute(f"INSERT INTO runs VALUES ({marks})", [copy[name] for name in columns])
            if number % entries_every == 0:
                rows = [(identifier, *row) for row in entries[run["id"]]]
                db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    db.close()


def times(binary, folder, runs, entries_every):
    """Returns the medians in ms by what is timed."""
    database = Path(folder) / f"{runs}.db"
    with Service(binary, folder, database):
        for number in range(10):
            request("/api/chat", chat(f"u{number}"))
        own = [run["id"] for run in request("/api/runs?limit=10")[0]["runs"]]
    print(f"growth: {runs} runs", file=sys.stderr)
    multiplied(database, runs, entries_every)
    starts = []
    for _ in range(3):
        with Service(binary, folder, database) as service:
            starts.append(service.ready_ms)
    older = "01a00000-0000-7000-8000-000000000000"
    asked = {
        "the newest 20 runs": lambda n: request("/api/runs?limit=20"),
        "20 runs of a user": lambda n: request(f"/api/runs?limit=20&user=u{n}"),
        "20 failed runs": lambda n: request("/api/runs?limit=20&outcome=failed"),
        "20 answered runs of a mode, older than one": lambda n: request(
            f"/api/runs?limit=20&mode=ask&outcome=answered&cursor={older}"
        ),
        "one run": lambda n: request(f"/api/runs/{own[n % len(own)]}"),
        "the journal of a run": lambda n: request(f"/api/runs/{own[n % len(own)]}/journal"),
        "a new run, with three daily limits": lambda n: request("/api/chat", chat(f"u{n}")),
    }
    found = {"start-up": statistics.median(starts)}
    with Service(binary, folder, database):
        for name, ask in asked.items():
            ask(0)
            found[name] = statistics.median(ask(number)[1] for number in range(21))
    return found, database.stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the built service")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--entries-every", type=int, default=50)
    options = parser.parse_args()
    if not (peers.BENCH / "run_load.py").exists():
        print(f"\nGrowth: no {peers.BENCH}/mockllm; CONCLAVE_BENCH names the folder of the mock LLM.")
        return 0
    mock = peers.built("mockllm")
    with tempfile.TemporaryDirectory() as folder:
        command = [mock, "--port", "9123", "--rules", peers.rules(folder)]
        upstream = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            few, size = times(options.binary, folder, FEW, 1)
            many, _ = times(options.binary, folder, options.runs, options.entries_every)
        finally:
            upstream.terminate()
    print(f"\nGrowth: medians of {options.runs:,} stored runs (SQLite), as ratios to {FEW:,}:\n")
    print("| what | ratio |\n| --- | ---: |")
    for name, ms in many.items():
        print(f"| {name} | {ms / few[name]:.2f} |")
    print(f"\nStored bytes of a run with all its entries: {size // FEW:,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
