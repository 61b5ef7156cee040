"""Starts the real binary on loopback and speaks its HTTP API and its command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-ant-api03-panels-0123456789"
SECRETS = (KEY,)


@dataclass
class Answer:
    """What a client got: of an HTTP request or of a command."""

    status: int
    headers: dict = field(default_factory=dict)
    text: str = ""
    seconds: float = 0.0
    events: list[tuple[str, dict]] = field(default_factory=list)
    errors: str = ""

    @property
    def body(self) -> dict:
        try:
            value = json.loads(self.text)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def run(self) -> str:
        return self.headers.get("x-request-id", "")

    @property
    def outcome(self) -> str:
        return self.headers.get("x-conclave-outcome", "")


def variants(shipped: dict) -> dict[str, dict]:
    """The configs of the panels: the shipped one, and it with one setting changed."""

    def changed(change) -> dict:
        copy = json.loads(json.dumps(shipped))
        change(copy)
        return copy

    def short(c: dict) -> None:
        c["policy"]["deadlines"].update(connect=1, call=5, ask=8, audit=9, deep=10)
        c["policy"]["retry"].update(baseMs=100, maxMs=400)

    def breaker(c: dict) -> None:
        c["policy"]["breaker"].update(failures=3)
        c["policy"]["retry"].update(baseMs=50, maxMs=100)

    return {
        "shipped": shipped,
        "faulty": shipped,
        "own": shipped,
        "altered": shipped,
        "slow": changed(short),
        "breaker": changed(breaker),
        "stream": changed(lambda c: c["providers"]["anthropic"].update(stream=True)),
        "tight": changed(lambda c: c["policy"].update(normalMaxUsd=0.055)),
        "images": shipped,
    }


class Service:
    """One `conclave serve` with its own database."""

    def __init__(self, binary: Path, name: str, config: dict, folder: Path, upstream: str):
        self.binary, self.name, self.folder = binary, name, folder
        folder.mkdir(parents=True)
        config = {k: v for k, v in config.items() if k != "$schema"}
        (folder / "llm.config.json").write_text(json.dumps(config))
        self.url = ""
        self.environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "USER": "panels",
            "XDG_DATA_HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder),
            "CONCLAVE_CONFIG": str(folder / "llm.config.json"),
            "CONCLAVE_BIND": "127.0.0.1:0",
            "DATABASE_URL": f"sqlite://{folder}/conclave.db",
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": upstream,
            "RUST_LOG": "warn,conclave::cli::serve=info",
            "NO_COLOR": "1",
        }
        if name == "images":
            self.environment["ATTACHMENT_HOSTS"] = "127.0.0.1,images.invalid"
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        log = open(self.folder / "log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [self.binary, "serve"], env=self.environment, cwd=self.folder, stdout=log, stderr=log
        )

    def wait(self) -> None:
        """Waits until the service tells its address and is ready."""
        for _ in range(600):
            if self.process and self.process.poll() is not None:
                raise SystemExit(f"the service {self.name} ended: {self.log()[-800:]}")
            if told := re.search(r"listening on (http://127\.0\.0\.1:\d+)", self.log()):
                self.url = told[1]
            try:
                if not self.url:
                    raise OSError
                with urllib.request.urlopen(self.url + "/ready", timeout=2):
                    return
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"the service {self.name} did not become ready")

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def request(
        self, method: str, path: str, body: dict | None = None, headers: dict | None = None, timeout: float = 100
    ) -> Answer:
        """Sends one request; an HTTP error is an answer too."""
        data = json.dumps(body, ensure_ascii=False).encode() if body is not None else None
        sent = urllib.request.Request(
            self.url + path, data=data, method=method, headers={"content-type": "application/json", **(headers or {})}
        )
        begun = time.time()
        try:
            with urllib.request.urlopen(sent, timeout=timeout) as got:
                return Answer(got.status, lower(got.headers), got.read().decode(), time.time() - begun)
        except urllib.error.HTTPError as got:
            return Answer(got.code, lower(got.headers), got.read().decode(), time.time() - begun)
        except OSError as problem:
            return Answer(0, {}, str(problem), time.time() - begun)

    def stream(self, body: dict) -> Answer:
        """Asks with server-sent events; the last event is the answer."""
        got = self.request("POST", "/api/chat", body, {"accept": "text/event-stream"})
        for block in got.text.split("\n\n"):
            fields = dict(
                line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":")
            )
            if "event" in fields:
                got.events.append((fields["event"], json.loads(fields.get("data", "{}"))))
        if got.events and got.events[0][0] == "run":
            got.headers["x-request-id"] = got.events[0][1].get("runId", "")
        if got.events and got.events[-1][0] in ("reply", "error"):
            got.text = json.dumps(got.events[-1][1], ensure_ascii=False)
            got.status = got.events[-1][1].get("status", 200)
        return got

    def command(self, args: list[str], timeout: float = 100) -> Answer:
        """Runs the binary as a command with the same config and database."""
        begun = time.time()
        done = subprocess.run(
            [self.binary, *args],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
        )
        return Answer(done.returncode, {}, done.stdout, time.time() - begun, errors=done.stderr)


def lower(headers) -> dict:
    return {k.lower(): v for k, v in headers.items()}
