#!/usr/bin/env python3
"""Runs the load that a profile-guided build of the service is trained with.

Usage: scripts/train.py CONCLAVE

Starts the service with an empty journal, and a server that answers as a committee which agrees; both
on the loopback. Then clients ask questions and roll dice. Standard library only.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import peers

QUESTIONS = 1500
ACTIONS = 300
CLIENTS = 8
# Seconds until the service must answer.
PATIENCE = 60


class Models(BaseHTTPRequestHandler):
    """Answers a call with the first reply whose phrase the call has."""

    protocol_version = "HTTP/1.1"
    replies = []

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        reply = next((rule["reply"] for rule in self.replies if rule["match"] in asked), {})
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": json.loads(asked)["model"],
            "content": [{"type": "text", "text": json.dumps(reply)}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1500, "output_tokens": 300},
        }
        body = json.dumps(message).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def until_healthy(url, process):
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            return urllib.request.urlopen(f"{url}/health", timeout=5).close()
        except OSError:
            time.sleep(0.05)
    sys.exit("train: the service did not start")


def client(url, number, failed):
    """Asks this client's share of the questions, and rolls its share of the dice."""
    common = {"source": "http", "user": {"id": f"u{number}", "name": "U"}, "context": {}}
    try:
        for turn in range(QUESTIONS // CLIENTS):
            answer = post(f"{url}/api/chat", {**common, "mode": "ask", "message": peers.QUESTION})
            if not answer["reply"]:
                raise ValueError("the reply is empty")
            if turn % (QUESTIONS // ACTIONS) == 0:
                post(f"{url}/api/act", {**common, "message": f"/roll {turn % 9 + 1}d20+3"})
    except (OSError, ValueError, KeyError) as error:
        failed.append(f"client {number}: {error!r}")


def main():
    binary = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        Models.replies = json.loads(peers.rules(folder).read_text())
        models = ThreadingHTTPServer(("127.0.0.1", 0), Models)
        threading.Thread(target=models.serve_forever, daemon=True).start()
        settings = {
            "CONCLAVE_BIND": "127.0.0.1:8124",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{models.server_port}",
            "ANTHROPIC_API_KEY": "mock",
            "CONCLAVE_CONFIG": str(peers.ROOT / "llm.config.json"),
            "DATABASE_URL": f"sqlite://{folder}/train.db",
            "RUST_LOG": "warn",
        }
        process = subprocess.Popen([binary, "serve"], cwd=folder, env={**os.environ, **settings})
        url, failed = f"http://{settings['CONCLAVE_BIND']}", []
        try:
            until_healthy(url, process)
            clients = [threading.Thread(target=client, args=(url, n, failed)) for n in range(CLIENTS)]
            for thread in clients:
                thread.start()
            for thread in clients:
                thread.join()
        finally:
            # The profile is written when the service ends by itself.
            process.terminate()
            process.wait(PATIENCE)
    if failed:
        sys.exit("train: " + "; ".join(failed))


if __name__ == "__main__":
    main()
