"""A scripted Messages API on loopback: it recognises each call of a run and answers it from a panel's script.

It is honest where a vendor is. A text longer than `max_tokens` is really cut, and usage is billed by
the same count of tokens.
"""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

ROLES = ("solver", "critic", "verifier", "editor", "implementer", "visual")
SCRIPT_LETTERS = re.compile(r"[^\x00-\x7f]")


def tokens(text: str) -> int:
    """Counts four ASCII characters, or one other character, as a token."""
    wide = len(SCRIPT_LETTERS.findall(text))
    return wide + -(-(len(text) - wide) // 4)


def cut(text: str, limit: int) -> str:
    """Returns the longest start of a text that has at most `limit` tokens."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if tokens(text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return text[:low]


@dataclass
class Call:
    """One request to the model, as the service sent it.

    `words` is the limit in words that its message states, `usual_words` that of the system part.
    """

    kind: str
    role: str
    step: str
    model: str
    max_tokens: int
    words: int | None
    usual_words: int | None
    system: str
    text: str
    schema: dict
    images: int
    streamed: bool
    turn: int = 0
    status: int = 200
    output: str = ""
    was_cut: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    at: float = field(default_factory=time.time)
    done: float = 0.0

    def line(self) -> str:
        """Describes the call in one line, for reading."""
        name = self.kind if not self.role or self.role == self.kind else f"{self.kind} {self.role}"
        told = f", told {self.words} words" if self.words else ""
        end = f"HTTP {self.status}" if self.status != 200 else "cut" if self.was_cut else "whole"
        return (
            f"turn {self.turn + 1} {name} [{self.step}] {self.model} max_tokens {self.max_tokens}{told}: "
            f"{self.input_tokens} in, {self.output_tokens} out, {end}"
        )


@dataclass
class Raw:
    """Plain text instead of JSON."""

    text: str


@dataclass
class Fail:
    """An HTTP error of the provider."""

    status: int
    kind: str = "overloaded_error"
    message: str = "Overloaded"
    headers: dict = field(default_factory=dict)


@dataclass
class Late:
    """An answer after some seconds."""

    seconds: float
    value: Any = None


# ---------------------------------------------------------------- recognition


def schema_of(request: dict) -> dict:
    """Finds the JSON schema of the wanted output, wherever the request has it."""
    form = (request.get("output_config") or {}).get("format") or {}
    if form.get("schema"):
        return form["schema"]
    tools = request.get("tools") or []
    return tools[0].get("input_schema", {}) if tools else {}


def role_of(system: str, text: str) -> str:
    """Reads the role that an agent is given."""
    for pattern in (
        r"Your role: (\w+)",
        r"[Rr]eport as the (\w+)",
        r"[Rr]ole:? \W?(\w+)",
        r"as the (\w+)",
        r"the (\w+)",
    ):
        for found in re.findall(pattern, text[-400:] + "\n" + system):
            if found.lower() in ROLES:
                return found.lower()
    return ""


def kind_of(schema: dict, text: str) -> str:
    """Recognises a call by the fields that it wants."""
    has = set(schema.get("properties", {}))
    if {"agentsToRun", "rounds"} <= has:
        return "plan"
    if {"replyMarkdown", "meta"} <= has:
        return "synthesis"
    if {"claims", "parts"} <= has:
        return "cross-check"
    if "decisions" in has:
        return "decisions"
    if "answerSummary" in has:
        return "agent"
    if {"question", "options"} <= has:
        return "question"
    if any("step" in name.lower() for name in has):
        return "estimate"
    if not has or any(re.search(r"(?i)markdown|continu|rest|text", name) for name in has):
        return "continuation"
    return "other"


REPAIR = r"(?i)did not (?:satisfy|fit|match)|was not valid|problems? (?:were|was|are)|your (?:last|previous) (?:output|answer|reply|text)|with these problems"
CONTINUE = r"(?i)\b(?:continue|continuation|go on|carry on|pick up)\b|where (?:it|the text|your text) (?:ended|stopped|broke|was cut)|rest of (?:the|your)"


def unfenced(text: str) -> str:
    """The words of the service itself, without the data that it quotes."""
    return re.sub(r"(?s)<<<(\w+) .*?\1>>>", "", text)


def changed_kind(kind: str, role: str, request: dict, said: str) -> tuple[str, str]:
    """Tells a call that continues a cut text, or mends an output, from a first call."""
    again = any(m["role"] == "assistant" for m in request["messages"])
    if (
        kind in ("synthesis", "continuation", "other")
        and re.search(CONTINUE, said)
        and not re.search(r"(?i)schema", said)
    ):
        return "continuation", ""
    if again or re.search(REPAIR, said):
        return "repair", role or kind
    return kind, role


def words_told(text: str) -> int | None:
    """Reads the least word limit that a prompt states, outside of the data that it quotes."""
    text = unfenced(text)
    found = re.findall(r"(?i)word limit[^0-9\n]{0,80}?(\d[\d,]*)", text)
    found += re.findall(r"(?i)(\d[\d,]*)\s+(?:words|Wörter|palabras)", text)
    return min((n for n in (int(f.replace(",", "")) for f in found) if n >= 40), default=None)


def texts(content: Any) -> tuple[str, int]:
    """Joins the text of a message's content and counts its images."""
    if isinstance(content, str):
        return content, 0
    parts = [p.get("text", "") for p in content if p.get("type") == "text"]
    return "\n".join(parts), sum(p.get("type") == "image" for p in content)


def recognise(request: dict, step: str) -> Call:
    """Turns a request into a call."""
    system = texts(request.get("system") or "")[0]
    read = [texts(m["content"]) for m in request["messages"]]
    text = "\n".join(r[0] for r in read)
    schema = schema_of(request)
    kind = kind_of(schema, text)
    role = role_of(system, text) if kind in ("agent", "decisions") else ""
    if kind in ("agent", "decisions") and not role:
        role = next((part for part in re.split(r"\W", step) if part in ROLES), "")
    last_user = next((r[0] for r, m in zip(reversed(read), reversed(request["messages"])) if m["role"] == "user"), text)
    kind, role = changed_kind(kind, role, request, unfenced(last_user))
    return Call(
        kind,
        role,
        step,
        request["model"],
        request["max_tokens"],
        words_told(last_user),
        words_told(system),
        system,
        text,
        schema,
        sum(r[1] for r in read),
        bool(request.get("stream")),
    )


# ---------------------------------------------------------------- the server

Responder = Callable[[str, Call], Any]


class Upstream:
    """The server. `respond(panel, call)` gives the scripted answer, `find(call)` the panel of a new run."""

    def __init__(self, find: Callable[[Call], str | None], respond: Responder):
        self.find, self.respond = find, respond
        self.lock = threading.Lock()
        self.runs: dict[str, str] = {}
        self.calls: dict[str, list[Call]] = {}
        self.strays: list[Call] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def start(self) -> None:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()

    def panel_of(self, run: str, call: Call) -> str | None:
        """Finds the panel of a run by its first call, and remembers it."""
        with self.lock:
            known = self.runs.get(run)
        if known:
            return known
        name = self.find(call)
        if name and run:
            with self.lock:
                self.runs[run] = name
        return name

    def answer(self, request: dict, key: str) -> tuple[Call, Any]:
        """Recognises a request, records it and looks up its scripted answer."""
        run, _, step = key.partition("/")
        call = recognise(request, step)
        panel = self.panel_of(run, call)
        call.input_tokens = (
            tokens(call.system) + tokens(call.text) + tokens(json.dumps(call.schema, ensure_ascii=False))
        )
        if panel is None:
            with self.lock:
                self.strays.append(call)
            return call, Fail(400, "invalid_request_error", "no panel has this question")
        with self.lock:
            self.calls.setdefault(panel, []).append(call)
        return call, self.respond(panel, call)

    def handler(self) -> type[BaseHTTPRequestHandler]:
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
                call, value = upstream.answer(request, self.headers.get("idempotency-key", ""))
                while isinstance(value, Late):
                    time.sleep(value.seconds)
                    value = value.value
                call.done = time.time()
                try:
                    if isinstance(value, Fail):
                        call.status = value.status
                        self.fail(value)
                    else:
                        self.say(request, call, value)
                except OSError:
                    call.status = 0

            def fail(self, value: Fail) -> None:
                body = {"type": "error", "error": {"type": value.kind, "message": value.message}}
                self.send(value.status, "application/json", json.dumps(body), value.headers)

            def say(self, request: dict, call: Call, value: Any) -> None:
                message = written(request, call, value)
                if call.streamed:
                    self.send(200, "text/event-stream", stream(message, call.output))
                else:
                    self.send(200, "application/json", json.dumps(message))

            def send(self, status: int, kind: str, text: str, headers: dict | None = None) -> None:
                data = text.encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

        return Handler


def written(request: dict, call: Call, value: Any) -> dict:
    """Writes a value as a message: cut at the limit, and with honest usage."""
    whole = value.text if isinstance(value, Raw) else json.dumps(value, ensure_ascii=False)
    call.output = cut(whole, call.max_tokens)
    call.was_cut = len(call.output) < len(whole)
    call.output_tokens = tokens(call.output)
    block: dict = {"type": "text", "text": call.output}
    if request.get("tools") and not call.was_cut and not isinstance(value, Raw):
        block = {"type": "tool_use", "id": "toolu_1", "name": request["tools"][0]["name"], "input": value}
    usage = {
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": [block],
        "stop_reason": "max_tokens" if call.was_cut else "tool_use" if block["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


def stream(message: dict, output: str) -> str:
    """Writes a message as the server-sent events of a streamed reply."""
    start = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    events: list[tuple[str, dict]] = [("message_start", {"message": start})]
    tool = message["content"][0]["type"] == "tool_use"
    block = {**message["content"][0], "input": {}} if tool else {"type": "text", "text": ""}
    events.append(("content_block_start", {"index": 0, "content_block": block}))
    for at in range(0, len(output), 200):
        part = output[at : at + 200]
        delta = {"type": "input_json_delta", "partial_json": part} if tool else {"type": "text_delta", "text": part}
        events.append(("content_block_delta", {"index": 0, "delta": delta}))
    events.append(("content_block_stop", {"index": 0}))
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    events.append(
        ("message_delta", {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": usage})
    )
    events.append(("message_stop", {}))
    return "".join(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events)
