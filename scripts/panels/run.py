#!/usr/bin/env python3
"""Runs scripted panels against the real binary and prints what a reader gets.

    python3 scripts/panels/run.py [--binary PATH] [--only NAME...] [-v] [--markdown FILE]

Each panel is a conversation with the service. The models behind it are scripted (`upstream.py`), all else
is real: the program, its HTTP API, its command line and its database.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True

import checks
import examples
import script
from checks import Seen
from conversations import PANELS
from panel import Panel, Turn
from service import ROOT, Answer, Service, variants
from upstream import Call, Upstream

AT_ONCE = 8
ALONE = ("own", "altered", "breaker", "slow")


class Runner:
    """Runs panels on their services and collects what each turn left behind."""

    def __init__(self, binary: Path, panels: list[Panel], folder: Path):
        self.panels = {p.name: p for p in panels}
        self.turns: dict[str, int] = {}
        self.counts: dict[str, Counter] = {}
        self.lock = threading.Lock()
        self.openings = sorted(((m, p.name) for p in panels for m in asked(p)), key=lambda pair: -len(pair[0]))
        self.upstream = Upstream(self.find, self.respond)
        self.upstream.start()
        configs = variants(json.loads((ROOT / "llm.config.json").read_text()))
        names = dict.fromkeys(p.config for p in panels)
        self.services = {n: Service(binary, n, configs[n], folder / n, self.upstream.url) for n in names}

    def find(self, call: Call) -> str | None:
        """Finds the panel whose question a call carries; the longest match wins, short ones have to be all of it."""
        text = squeeze(call.text)
        return next(
            (
                name
                for message, name in self.openings
                if message[:400] in text and (len(message) > 12 or f" {message} " in text)
            ),
            None,
        )

    def respond(self, name: str, call: Call) -> Any:
        """Answers from the script of the turn that the panel is in."""
        panel = self.panels[name]
        number = self.turns.get(name, 0)
        call.turn = number
        facts, said = dict(panel.facts), dict(panel.script)
        for turn in panel.turns[: number + 1]:
            facts.update(turn.facts)
            said.update(turn.script)
        with self.lock:
            kind = (number, call.kind, call.role)
            counts = self.counts.setdefault(name, Counter())
            before = counts[kind]
            counts[kind] += 1
        return script.respond(said, facts, call, before)

    def run(self, panel: Panel) -> tuple[list[Seen], list[str]]:
        """Sends the turns of a panel one after the other, and checks each."""
        service, seen, out = self.services[panel.config], [], []
        asked = False
        for number, turn in enumerate(panel.turns):
            self.turns[panel.name] = number
            last = next((s for s in reversed(seen) if s.turn.do in ("chat", "stream")), None)
            if turn.do in ("chat", "stream"):
                fresh = not last or turn.message.startswith("new:")
                asked = not fresh and (asked or last.answer.outcome == "clarification")  # type: ignore[union-attr]
            if turn.before:
                BEFORE[turn.before](service, seen)
            if turn.pick:
                turn.message = picked(turn, last.reply if last else "")
            answer = self.send(service, panel, turn, number, seen)
            calls = [c for c in self.upstream.calls.get(panel.name, []) if c.turn == number]
            facts = dict(panel.facts)
            for earlier in panel.turns[: number + 1]:
                facts.update(earlier.facts)
            this = Seen(panel, turn, answer, calls, facts, service, asked and turn.do in ("chat", "stream"), list(seen))
            self.look_up(service, this)
            reasons = checks.invariants(this) + checks.expectations(this)
            out += [f"turn {number + 1}: {r}" if len(panel.turns) > 1 else r for r in reasons]
            seen.append(this)
        return seen, out

    def look_up(self, service: Service, seen: Seen) -> None:
        """Fetches what the service stored of a run."""
        if seen.turn.do not in ("chat", "stream") or not seen.answer.run or seen.answer.status == 0:
            return
        run = service.request("GET", f"/api/runs/{seen.answer.run}")
        seen.run = run.body if run.status == 200 else {}
        if seen.turn.do == "stream":
            seen.answer.headers["x-conclave-outcome"] = seen.run.get("state", "")
        if seen.answer.status == 200:
            seen.journal = service.request("GET", f"/api/runs/{seen.answer.run}/journal").body

    def send(self, service: Service, panel: Panel, turn: Turn, number: int, seen: list[Seen]) -> Answer:
        body = {
            "source": "http",
            "mode": turn.mode,
            "user": {"id": turn.user or panel.name, "name": "Reader"},
            "context": {"channelId": panel.name},
            "message": turn.message,
        }
        if turn.attachments:
            body["attachments"] = turn.attachments
        if turn.do == "cli":
            return service.command([fill(a, service, panel, seen) for a in turn.args])
        if turn.do == "quote":
            return service.request("POST", "/api/quote", body)
        if turn.do == "stream":
            return service.stream(body)
        return service.request("POST", "/api/chat", body, {"idempotency-key": str(uuid.uuid4())})

    def all(self) -> list[tuple[Panel, list[Seen], list[str]]]:
        """Runs every panel; those that share a service run together, unless they must be alone."""
        for service in self.services.values():
            service.start()
        for service in self.services.values():
            service.wait()
        results: dict[str, tuple[list[Seen], list[str]]] = {}

        def one(panel: Panel) -> None:
            try:
                results[panel.name] = self.run(panel)
            except Exception as problem:  # a defect of a check must not hide the other panels
                results[panel.name] = ([], [f"the panel broke: {type(problem).__name__} {problem}"])

        def row(config: str) -> None:
            for panel in [p for p in self.panels.values() if p.config == config]:
                one(panel)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            work = [pool.submit(row, c) for c in ALONE if c in self.services]
            work += [pool.submit(one, p) for p in self.panels.values() if p.config not in ALONE]
            for item in work:
                item.result()
        return [(p, *results[n]) for n, p in self.panels.items()]

    def stop(self) -> None:
        for service in self.services.values():
            service.stop()
        self.upstream.stop()


def picked(turn: Turn, question: str) -> str:
    """Chooses an option of a question by what it says: its letter, or its text."""
    for letter, text in checks.options(question):
        if re.search(turn.pick, text, re.I):
            return text if turn.pick_text else letter
    return "B"


def asked(panel: Panel) -> list[str]:
    """The messages of a panel that can begin a run."""
    sent = [t.message for t in panel.turns if t.do in ("chat", "stream") and not t.pick]
    sent += [t.args[-1] for t in panel.turns if t.do == "cli" and t.args[0] in ("ask", "audit", "deep")]
    return [squeeze(m.removeprefix("new:")) for m in sent if len(m) > 5]


def squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def fill(text: str, service: Service, panel: Panel, seen: list[Seen]) -> str:
    """Puts the last run and the service into an argument."""
    run = next((s.answer.run for s in reversed(seen) if s.answer.run), "")
    for s in seen:
        found = re.findall(
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b", s.answer.errors + s.answer.text
        )
        run = run or (found[-1] if found else "")
    return (
        text.replace("{run}", run)
        .replace("{prefix}", run[:23])
        .replace("{server}", service.url)
        .replace("{user}", panel.name)
    )


def alter(service: Service, seen: list[Seen]) -> None:
    """Changes a word in the stored journal, as somebody with access to the disk could."""
    import sqlite3

    with sqlite3.connect(service.folder / "conclave.db") as database:
        tables = [r[0] for r in database.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            columns = [r[1] for r in database.execute(f"pragma table_info({table})")]
            if {"seq", "body", "hash"} <= set(columns):
                database.execute(f"update {table} set body = replace(body, 'sourdough', 'ryebread')")


BEFORE = {"alter": alter}


# ---------------------------------------------------------------- printing


def block(panel: Panel, seen: list[Seen]) -> str:
    """What a reader gets of one panel."""
    lines = [
        f"== {panel.name} (point {panel.point or '-'}, {panel.lang})" + (f": {panel.about}" if panel.about else "")
    ]
    for s in seen:
        meta = f" c_final {s.meta['c_final']:.2f}, {s.cost:.4f} USD," if s.meta else ""
        kinds = Counter(c.kind for c in s.calls)
        calls = ", ".join(f"{n} {k}" for k, n in kinds.items()) or "no calls"
        asked = s.turn.message if s.turn.do != "cli" else " ".join(s.turn.args)
        lines.append(f"-- {s.turn.do} {s.turn.mode}: {asked[:160]!r}")
        lines.append(f"   {s.answer.status} {s.answer.outcome}{meta} {calls}, {s.answer.seconds:.1f} s")
        text = s.reply or s.answer.text + s.answer.errors
        lines += ["   | " + line for line in text.strip().splitlines()[:LINES]]
        if CALLS:
            lines += ["   > " + c.line() for c in s.calls]
    return "\n".join(lines)


LINES, CALLS = 14, False


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/debug/conclave")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="panels whose name contains one of these")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the examples to this file")
    parser.add_argument("-v", action="store_true", help="print what a reader gets")
    parser.add_argument("--whole", action="store_true", help="with -v: print whole replies, and each call")
    parser.add_argument("--keep", action="store_true", help="keep the databases and logs")
    return parser.parse_args()


def main() -> int:
    global LINES, CALLS
    wanted = options()
    LINES, CALLS = (10000, True) if wanted.whole else (LINES, CALLS)
    panels = [p for p in PANELS if not wanted.only or any(n in p.name for n in wanted.only)]
    twice = [m for m, n in Counter(m for p in PANELS for m in asked(p)).items() if n > 1]
    if twice:
        raise SystemExit(f"two panels send {twice}: calls could not be told apart")
    folder = Path(tempfile.mkdtemp(prefix="panels-"))
    begun = time.time()
    runner = Runner(wanted.binary.resolve(), panels, folder)
    try:
        results = runner.all()
    finally:
        runner.stop()
        if wanted.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    failed = 0
    for panel, seen, reasons in results:
        if wanted.v:
            print(block(panel, seen))
        print(f"{'FAIL' if reasons else 'ok  '} {panel.name}" + "".join(f"\n     - {r}" for r in reasons))
        failed += bool(reasons)
    for call in runner.upstream.strays:
        print(f"stray call: {call.line()}")
    if wanted.markdown:
        wanted.markdown.write_text(examples.page([(p, s) for p, s, _ in results if p.example]))
    print(f"panels: {len(results) - failed} passed, {failed} failed ({time.time() - begun:.0f} s)")
    return 1 if failed or runner.upstream.strays else 0


if __name__ == "__main__":
    sys.exit(main())
