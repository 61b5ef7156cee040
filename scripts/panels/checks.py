"""What must hold: the invariants of every reply, and the expectations of a turn. Each returns reasons of failure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from panel import Panel, Turn
from service import SECRETS, Answer, Service
from upstream import Call

CAPS = {"ask": 0.10, "audit": 0.10, "deep": 0.50}
TASKS = {"PROMPT_ENGINEERING", "VERBAL_REASONING", "TECHNICAL_EXECUTION", "VISUAL_ANALYSIS", "MIXED"}
AGENTS = {"solver", "critic", "verifier", "editor", "implementer", "visual"}
SECTIONS = [
    ("TL;DR", r"TL;?DR|Kurzfassung|Kurz gesagt|Resumen|En breve|要約|まとめ"),
    (
        "Acceptance tests",
        r"Acceptance tests|Abnahme\w*|Akzeptanztests|Pruebas de aceptación|受け入れ(?:テスト|試験)|検収\w*",
    ),
    ("Assumptions", r"Assumptions|Annahmen|Supuestos|Suposiciones|Hipótesis|前提\w*|仮定"),
    ("Confidence", r"Confidence|Konfidenz|Zuversicht|Verlässlichkeit|Sicherheit|Vertrauen|Confianza|信頼度|確信度"),
    ("Estimate", r"Execution time estimate|\w*(?:schätzung|Schätzung)\w*.*|Estimación.*|\w*見積\w*"),
    ("Audit", r"Audit appendix|Audit.*|\w*Anhang.*|Apéndice.*|監査\w*"),
]
BELOW = (
    r"below the threshold|under the threshold|below \d|threshold|cannot be decided|could not (?:be decided|reach)|not enough confidence|"
    r"Schwelle|unter \d|nicht entsch|umbral|no se puede decidir|no (?:alcanza|se alcanz)|下回|未満|しきい値|閾値|判断でき|決められ|決定でき"
)


@dataclass
class Seen:
    """All that a turn left behind."""

    panel: Panel
    turn: Turn
    answer: Answer
    calls: list[Call]
    facts: dict
    service: Service
    asked: bool = False
    before: list["Seen"] = field(default_factory=list)
    run: dict = field(default_factory=dict)
    journal: dict = field(default_factory=dict)

    @property
    def reply(self) -> str:
        return self.answer.body.get("reply") or ""

    @property
    def meta(self) -> dict:
        return self.answer.body.get("meta") or {}

    @property
    def cost(self) -> float:
        return (self.meta.get("budget") or {}).get("estimatedUsd", 0.0)

    def text(self) -> str:
        """All that the user can read: the reply, or the problem, or what a command printed."""
        return self.reply or "\n".join([self.answer.text, self.answer.errors])


def count(calls: list[Call], kind: str) -> int:
    """Counts calls by kind (`agent`), by kind and role (`agent:solver`), or all of them (`all`)."""
    name, _, role = kind.partition(":")
    return len([c for c in calls if name == "all" or c.kind == name and role in ("", c.role)])


# ---------------------------------------------------------------- the reply's parts


def prose(text: str) -> str:
    """Removes code and quoted text."""
    text = re.sub(r"(?ms)^(```|~~~).*?^\1", " ", text)
    text = re.sub(r"`[^`\n]*`", " ", text)
    text = re.sub(r"(?m)^>.*$", " ", text)
    return re.sub(r"\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」", " ", text)


def headings(reply: str) -> list[tuple[str, int]]:
    """Finds the sections that the service writes, in the order of the text; the last of a name counts."""
    found: dict[str, int] = {}
    for match in re.finditer(r"(?m)^(#{2,3}) (.+?)\s*$", reply):
        name = next((n for n, p in SECTIONS if re.fullmatch(p, match[2])), "")
        if name and (name not in found or name != "TL;DR") and "Audit" not in found:
            found[name] = match.start()
    return sorted(found.items(), key=lambda item: item[1])


def section(reply: str, name: str) -> str:
    """The text of one section, without its heading."""
    places = headings(reply) + [("", len(reply))]
    for (this, start), (_, end) in zip(places, places[1:]):
        if this == name:
            return reply[start:end].split("\n", 1)[-1].strip()
    return ""


def main_answer(reply: str) -> str:
    """The main answer: what follows the lines of the TL;DR."""
    return section(reply, "TL;DR").partition("\n\n")[2].strip()


def options(reply: str) -> list[tuple[str, str]]:
    return re.findall(r"(?m)^\W*([A-E])[).:\s*]+\s*(\S.*)$", reply)


# ---------------------------------------------------------------- invariants


def invariants(seen: Seen) -> list[str]:
    """What section 14 of the specification holds on every reply, as far as a client can see it."""
    answer, out = seen.answer, []
    for secret in SECRETS:
        if secret in answer.text + answer.errors:
            out.append("a secret stands in the answer")
    if seen.turn.do not in ("chat", "stream"):
        return out
    if answer.status != 200:
        return out + problem(seen)
    out += shape(seen)
    if seen.turn.loose:
        return out
    out += gate(seen)
    out += question_form(seen) if answer.outcome == "clarification" else reply_form(seen)
    if seen.journal and seen.journal.get("verified") is not True:
        out.append("the journal's chain does not verify")
    return out


def problem(seen: Seen) -> list[str]:
    body = seen.answer.body
    missing = {"type", "title", "status", "detail", "requestId"} - set(body)
    out = [f"the problem lacks {', '.join(sorted(missing))}"] if missing else []
    if re.search(r"(?i)panicked|\.rs:\d|SELECT .* FROM|/tmp/|/src/", seen.answer.text):
        out.append("the problem shows internals")
    return out


def shape(seen: Seen) -> list[str]:
    body, meta, out = seen.answer.body, seen.meta, []
    audit = seen.turn.mode != "ask"
    if set(body) != {"reply", "meta"} | ({"audit"} if audit else set()):
        out.append(f"the response has the fields {sorted(body)}")
    if set(meta) != {"taskType", "c_final", "budget", "usedAgents", "invalidation"}:
        return out + [f"meta has the fields {sorted(meta)}"]
    if meta["taskType"] not in TASKS:
        out.append(f"unknown task type {meta['taskType']}")
    budget, status = meta["budget"], meta["invalidation"]
    if set(budget) != {"capUsd", "estimatedUsd", "modeCapExceeded"} or set(status) != {
        "discarded",
        "quarantined",
        "valid",
    }:
        return out + ["budget or invalidation has other fields"]
    if abs(budget["capUsd"] - CAPS[seen.turn.mode]) > 1e-9 and seen.panel.config != "tight":
        out.append(f"the cap is {budget['capUsd']}")
    if budget["estimatedUsd"] > budget["capUsd"] or budget["modeCapExceeded"]:
        out.append(f"{budget['estimatedUsd']} USD were spent of {budget['capUsd']}")
    listed = [a for names in status.values() for a in names]
    if sorted(listed) != sorted(meta["usedAgents"]) or not set(listed) <= AGENTS or len(set(listed)) != len(listed):
        out.append(f"agents {meta['usedAgents']} and statuses {status} differ")
    for agent in status["discarded"]:
        if re.search(rf"\b{agent}:u\d", seen.reply):
            out.append(f"a unit of the discarded {agent} is referenced")
    return out


def gate(seen: Seen) -> list[str]:
    c, asks = seen.meta.get("c_final", -1), seen.answer.outcome == "clarification"
    if seen.answer.outcome not in ("answered", "clarification"):
        return [f"outcome {seen.answer.outcome!r}"]
    if not 0 <= c <= 1:
        return [f"c_final {c}"]
    if seen.asked:
        if asks:
            return ["a second question in one lineage"]
        return (
            []
            if c >= 0.7 or re.search(BELOW, seen.reply)
            else [f"c_final {c:.2f} ships without saying that it is below the threshold"]
        )
    if c >= 0.7 and asks or c < 0.7 and not asks:
        return [f"c_final {c:.2f} and outcome {seen.answer.outcome}"]
    return []


def question_form(seen: Seen) -> list[str]:
    reply, out = seen.reply, []
    letters = [letter for letter, _ in options(reply)]
    if letters != ["A", "B", "C"]:
        out.append(f"the question has the options {letters}")
    asks = len(re.findall(r"[?？]", prose(reply)))
    if asks > 1 or asks == 0 and not seen.turn.plain:
        out.append(f"a clarification with {asks} question marks")
    lines = [line for line in reply.splitlines() if line.strip()]
    if lines and not re.match(r"\W*C[).:\s*]", lines[-1]):
        out.append("text stands after the options")
    if re.search(r"(?m)^#{1,3} ", reply):
        out.append("a clarification with headings")
    texts = [re.sub(r"\W+", " ", t).lower() for _, t in options(reply)]
    if len(set(texts)) != len(texts):
        out.append("two options are the same")
    return out


def reply_form(seen: Seen) -> list[str]:
    reply, out = seen.reply, []
    names = [name for name, _ in headings(reply)]
    order = [name for name, _ in SECTIONS if name in names]
    for needed in ("TL;DR", "Assumptions", "Confidence"):
        if needed not in names:
            out.append(f"no section {needed}")
    if names != order:
        out.append(f"sections in the order {names}")
    if seen.turn.mode == "ask" and "Audit" in names or seen.turn.mode != "ask" and "Audit" not in names:
        out.append("the audit appendix is in the wrong mode")
    if not main_answer(reply):
        out.append("no main answer")
    if re.search(r"[?？][\s*_)]*$", prose(main_answer(reply))):
        out.append("the main answer ends in a question")
    shown = re.search(r"\b([01][.,]\d\d)\b", section(reply, "Confidence"))
    if not shown or abs(float(shown[1].replace(",", ".")) - seen.meta.get("c_final", -1)) > 0.0101:
        out.append("the Confidence section does not show c_final")
    return out + estimate_form(seen)


def estimate_form(seen: Seen) -> list[str]:
    """A plan has an estimate, and its arithmetic is right."""
    reply = seen.reply
    ordered = [len(re.findall(r"(?m)^\s{0,3}\d+[.)] ", block)) for block in [prose(main_answer(reply))]]
    text = section(reply, "Estimate")
    if not text:
        return ["a plan without an estimate"] if max(ordered) >= 3 else []
    steps = table(text)
    if len(steps) < 2:
        return ["the estimate has no steps"]
    out = []
    for o, m, p, e in steps:
        if not 0 <= o <= m <= p or abs((o + 4 * m + p) / 6 - e) > 0.06:
            out.append(f"the estimate's arithmetic is wrong: {o} {m} {p} {e}")
    sums = [sum(r[i] for r in steps[:-1]) for i in range(4)]
    if any(abs(s - t) > 0.06 * len(steps) for s, t in zip(sums, steps[-1])):
        out.append(f"the totals {steps[-1]} are not the sums {sums}")
    return out


def table(text: str) -> list[list[float]]:
    """Reads O, M, P and E of each step and of the totals, from a Markdown table or from `O=1, M=2, P=3, E=2`."""
    rows = []
    for line in text.splitlines():
        named = dict(re.findall(r"\b([OMPE])(?:_\w+)?\s*[=:]\s*(\d+(?:[.,]\d+)?)", line))
        cells = [c.strip(" *").replace(",", ".") for c in line.strip().strip("|").split("|")[1:]]
        numbers = [c for c in cells if re.fullmatch(r"\d+(?:\.\d+)?", c)]
        if len(named) == 4:
            rows.append([float(named[n].replace(",", ".")) for n in "OMPE"])
        elif line.strip().startswith("|") and len(numbers) >= 4:
            rows.append([float(n) for n in numbers[-4:]])
    return rows


# ---------------------------------------------------------------- expectations of a turn


def within(value: float, wanted: Any) -> bool:
    low, high = wanted if isinstance(wanted, (tuple, list)) else (wanted, wanted)
    return low - 1e-9 <= value <= high + 1e-9


def expectations(seen: Seen) -> list[str]:
    """Compares a turn with what the panel expects of it."""
    turn, answer, out = seen.turn, seen.answer, []
    wanted = turn.status if isinstance(turn.status, (tuple, list)) else (turn.status,)
    if turn.do == "cli":
        wanted = (0,) if turn.status == 200 else wanted
    if answer.status not in wanted:
        detail = answer.body.get("detail") or answer.errors.strip() or answer.text[:200]
        return [f"status {answer.status} instead of {' or '.join(map(str, wanted))}: {detail[:300]}"]
    if turn.do in ("chat", "stream") and answer.status == 200:
        if turn.outcome and answer.outcome != turn.outcome:
            out.append(f"{answer.outcome} instead of {turn.outcome} (c_final {seen.meta.get('c_final', 0):.2f})")
        if not within(seen.meta.get("c_final", -1), turn.c):
            out.append(f"c_final {seen.meta.get('c_final'):.3f} is not in {turn.c}")
        if not within(seen.cost, turn.cost):
            out.append(f"cost {seen.cost:.4f} is not in {turn.cost}")
    for kind, number in turn.calls.items():
        if not within(count(seen.calls, kind), number):
            out.append(f"{count(seen.calls, kind)} calls of kind {kind} instead of {number}")
    called = {c.role for c in seen.calls if c.kind == "agent"}
    out += [f"{a} was not asked again" for a in turn.again if a not in called]
    out += [f"{a} was asked again" for a in turn.spared if a in called]
    text = seen.text()
    out += [f"lacks {p!r}" for p in turn.has if not re.search(p, text, re.I | re.S)]
    out += [f"has {m[0][:80]!r}" for p in turn.lacks if (m := re.search(p, text, re.I | re.S))]
    for name in turn.checks:
        out += [f"{name}: {reason}" for reason in CHECKS[name](seen)]
    return out


# ---------------------------------------------------------------- named checks


def whole_answer(seen: Seen) -> list[str]:
    """The last paragraph that the model had to say reached the reader."""
    last = seen.facts["reply"][-1]
    return [] if last in seen.reply else ["the last paragraph of the answer is missing"]


def nothing_cut(seen: Seen) -> list[str]:
    return [f"{c.kind} {c.role} was cut at {c.max_tokens} tokens" for c in seen.calls if c.was_cut]


def limit_told(seen: Seen) -> list[str]:
    """The synthesis is told a number of words, and a text of that many words fits its limit."""
    out = []
    for call in [c for c in seen.calls if c.kind == "synthesis"]:
        if not call.words:
            out.append("no number of words is told")
        elif call.words * 1.5 > call.max_tokens:
            out.append(f"{call.words} words do not fit {call.max_tokens} tokens")
    return out


def ends_whole(seen: Seen) -> list[str]:
    """The main answer ends at the end of a paragraph that the model wrote."""
    last = prose(main_answer(seen.reply)).strip().split("\n\n")[-1]
    return [] if re.search(r"[.!。:)*_|]\s*$", last) else [f"the main answer ends in {last[-60:]!r}"]


def marked(seen: Seen) -> list[str]:
    """The service itself says that the text was cut or continued."""
    text = seen.reply[: dict(headings(seen.reply)).get("Audit", len(seen.reply))]
    for paragraph in seen.facts["reply"]:
        text = text.replace(paragraph, "")
    words = r"\bcut\b|shortened|continued|truncated|incomplete|gekürzt|abgeschnitten|fortgesetzt|unvollständig|cortad|recortad|continuad|incomplet|途中|省略|続き|切れ|切ら"
    return [] if re.search(words, text, re.I) else ["nothing says that the text was cut"]


def steps_estimated(seen: Seen) -> list[str]:
    """The estimate has one row for each step of the plan, and a total."""
    rows = table(section(seen.reply, "Estimate"))
    wanted = len(seen.facts["steps"]) + 1
    return [] if len(rows) == wanted else [f"{len(rows)} rows of {wanted}"]


def bought_reaches(seen: Seen) -> list[str]:
    """Most of the paragraphs that a cut synthesis held before its cut stand in the reply."""
    bought = [c.output for c in seen.calls if c.kind == "synthesis" and c.was_cut]
    paragraphs = [p for p in seen.facts["reply"] if any(p[:50] in b for b in bought)][:-1]
    missing = [p for p in paragraphs if p[:50] not in seen.reply]
    return [f"{len(missing)} of {len(paragraphs)} bought paragraphs are missing"] if missing else []


def free(seen: Seen) -> list[str]:
    return [f"{len(seen.calls)} calls were bought"] if seen.calls else []


def quoted(seen: Seen) -> list[str]:
    """The quote before the run told its price and its calls."""
    quote = next((s.answer.body for s in reversed(seen.before) if s.turn.do == "quote"), {})
    if not quote:
        return ["no quote"]
    ratio = quote["expectedUsd"] / seen.cost if seen.cost else math.inf
    out = [] if 0.5 <= ratio <= 1.0 else [f"quoted {quote['expectedUsd']:.4f}, cost {seen.cost:.4f}, ratio {ratio:.2f}"]
    if quote["calls"] != len(seen.calls):
        out.append(f"{quote['calls']} calls quoted, {len(seen.calls)} made")
    if quote["worstUsd"] < seen.cost:
        out.append(f"worst case {quote['worstUsd']:.4f}, cost {seen.cost:.4f}")
    return out


def not_cheaper(seen: Seen) -> list[str]:
    """This quote is not below the one before it."""
    before = [s.answer.body for s in seen.before if s.turn.do == "quote"][-1]
    now = seen.answer.body
    return [
        f"{name} {now[name]} after {before[name]}"
        for name in ("expectedUsd", "worstUsd")
        if now[name] < before[name] - 1e-9
    ]


def dearer_than_ask(seen: Seen) -> list[str]:
    before, now = [s.answer.body for s in seen.before if s.turn.do == "quote"][-1], seen.answer.body
    out = (
        [] if now["calls"] > before["calls"] else [f"{now['calls']} calls after {before['calls']} in the smaller mode"]
    )
    return out + (
        []
        if now["expectedUsd"] > before["expectedUsd"]
        else [f"{now['expectedUsd']} USD after {before['expectedUsd']}"]
    )


def no_noise(seen: Seen) -> list[str]:
    """No figure has more digits than a reader can use; hashes and ids are no figures."""
    text = re.sub(r"\b(?=[0-9a-f]*[a-f])[0-9a-f]{8,}(?:-[0-9a-f]+)*", " ", seen.text())
    found = re.findall(r"(?<![\w.])\d+\.\d{6,}", text)
    return [f"float noise {found[0]}"] if found else []


def abbreviations(seen: Seen) -> list[str]:
    """Each abbreviation of the audit text is explained somewhere in it."""
    text = seen.text()
    explained = {
        "Cred": r"Cred\b[^|\n]{0,20}(?:\(|:|=|is |means )[^|\n]*[a-z]{4}|\([^)\n]*\bCred\)",
        "PERT": r"O, M(?: and |, )P|optimistic|O = |O: ",
    }
    out = []
    if re.search(r"\bCred\b", text) and not re.search(explained["Cred"], text):
        out.append("Cred is not explained")
    if re.search(r"\|\s*O\s*\|\s*M\s*\|\s*P\s*\|", text) and not re.search(explained["PERT"], text):
        out.append("O, M, P, E are not explained")
    return out


def no_empty_features(seen: Seen) -> list[str]:
    found = re.findall(r"\w+ -?0(?:\.0+)? \(\+0\.0\)|\w+ [\d.]+ \([+-]0\.0\)", seen.text())
    return [f"features without a value: {', '.join(found[:3])}"] if found else []


def stage_events(seen: Seen) -> list[str]:
    names = [name for name, _ in seen.answer.events]
    out = [
        f"no event {n}"
        for n in ("run", "plan", "agent.started", "agent.finished", "score", "synthesis", "reply")
        if n not in names
    ]
    if names and names[-1] != "reply":
        out.append(f"the last event is {names[-1]}")
    started, finished = names.count("agent.started"), names.count("agent.finished")
    if started != finished:
        out.append(f"{started} agents started, {finished} finished")
    for stage in ("cross", "synthesis"):
        if len([n for n in names if stage in n]) < 2:
            out.append(f"the stage {stage} has no start and end of its own")
    return out


def same_language(seen: Seen) -> list[str]:
    """A question, or the notes of the service, are not in English when the user writes another language."""
    text = prose(seen.reply if seen.answer.outcome == "clarification" else section(seen.reply, "Confidence"))
    found = re.findall(
        r"(?i)\b(?:the|which|would|below|was|were|answer|reports?|agents?|with|could|usable|output|request|rejected|did|not|checked)\b",
        text,
    )
    return [f"English words in it: {', '.join(found[:5])}"] if len(found) > 1 else []


def told_unseen(seen: Seen) -> list[str]:
    """Every agent is told that the image cannot be seen."""
    hint = r"(?i)(?:not|n't|never)(?: be| been)? (?:fetched|seen|loaded|downloaded|retrieved|reached)|(?:cannot|can't|could not) (?:see|fetch|load|download|retrieve)|failed to (?:fetch|load)"
    agents = [c for c in seen.calls if c.kind == "agent"]
    blind = [c.role for c in agents if not re.search(hint, c.text)]
    return [f"not told: {', '.join(sorted(set(blind)))}"] if blind else []


def whole_or_refused(seen: Seen) -> list[str]:
    """A long question is answered from whole reports, or refused with its price before anything is bought."""
    if seen.answer.status == 200:
        return nothing_cut(seen) + ([] if seen.answer.outcome == "answered" else [seen.answer.outcome])
    out = free(seen)
    detail = seen.answer.body.get("detail", "")
    prices = [
        float(p.replace(",", "."))
        for p in re.findall(r"\d+[.,]\d+(?= ?USD)|(?<=[$] )\d+[.,]\d+|(?<=[$])\d+[.,]\d+", detail)
    ]
    if max(prices, default=0) <= CAPS[seen.turn.mode]:
        out.append(f"the refusal does not name the price that it would need: {detail[:200]}")
    return out


def more_room(seen: Seen) -> list[str]:
    """The synthesis of this turn has more room than that of the turn before."""
    rooms = [max([c.words or 0 for c in s.calls if c.kind == "synthesis"], default=0) for s in (seen.before[-1], seen)]
    return [] if rooms[1] > rooms[0] else [f"told {rooms[1]} words, before {rooms[0]}"]


def has_estimate(seen: Seen) -> list[str]:
    """The reply has an estimate whose figures are above zero and below a year."""
    rows = table(section(seen.reply, "Estimate"))
    if not rows:
        return ["no estimate"]
    return [f"times {r}" for r in rows if not 0 < r[3] < 9000]


def review_events(seen: Seen) -> list[str]:
    """A second round was run, and each agent's part in it has a start and an end."""
    names = [(n, d.get("round")) for n, d in seen.answer.events]
    if count(seen.calls, "decisions") == 0:
        return ["no second round was run"]
    begun = [n for n, r in names if r == 2 and n.endswith("started")]
    ended = [n for n, r in names if r == 2 and n.endswith("finished")]
    return [] if begun and len(begun) == len(ended) else [f"in round 2 {len(begun)} started, {len(ended)} finished"]


def limited_means_cut(seen: Seen) -> list[str]:
    """Limited outputs are spoken of only when one was cut."""
    said = re.search(r"(?i)outputs? (?:were|was) (?:limited|shortened|cut)", seen.text())
    if said and not any(c.was_cut for c in seen.calls):
        return ["it says that outputs were limited, and none was cut"]
    return []


def times_passed(seen: Seen) -> list[str]:
    """The stages one after the other take no longer than the whole run, and no agent longer than all of them.

    A longer time has to be called a sum. The times are compared with each other only, so a busy machine
    changes nothing.
    """
    ended = [
        (line.split()[0], float(found[1]))
        for line in seen.answer.errors.splitlines()
        if line.strip() and (found := re.search(r"\bafter (\d+\.\d) s\b", line))
    ]
    whole = max((seconds for name, seconds in ended if name == "run"), default=0.0)
    stages = [seconds for name, seconds in ended if name in ("plan", "round", "check", "synthesis")]
    rounding = 0.05 * (len(stages) + 1)
    out = [] if whole and len(stages) >= 4 else [f"{len(stages)} stages with a time, the run {whole} s"]
    if sum(stages) > whole + rounding:
        out.append(f"the stages show {sum(stages):.1f} s, the run {whole} s")
    for line in seen.answer.errors.splitlines():
        for number in re.findall(r"(\d+(?:\.\d+)?) s\b", line):
            if float(number) > max(whole, seen.answer.seconds) + 0.1 and not re.search("sum|total|together", line):
                out.append(f"{line.split()[0]} shows {number} s, {whole} s passed")
    return out


def stages_told(seen: Seen) -> list[str]:
    """Each stage has a line of its own in the progress; an agent has one for each round that it was asked in."""
    told = [line.strip().lower() for line in seen.answer.errors.splitlines()]
    wanted = {
        "plan": 1,
        r"(?:cross-?)?check": 1,
        "synthesis": 1,
        **{a: count(seen.calls, f"agent:{a}") for a in ("solver", "critic", "verifier")},
    }
    for agent in [c.role for c in seen.calls if c.kind == "decisions"]:
        wanted[agent] += 1
    out = []
    for stage, number in wanted.items():
        lines = [line for line in told if re.match(rf"\W*{stage}\b", line)]
        if len(lines) < number:
            out.append(f"{len(lines)} of {number} lines of {stage}")
    return out


def continues(seen: Seen) -> list[str]:
    """The run goes on from the one before it."""
    before = next((s.answer.run for s in reversed(seen.before) if s.answer.run), "")
    return [] if seen.run.get("parent") == before else ["it is a new run, and does not continue the one before"]


def visual_sees(seen: Seen) -> list[str]:
    sent = [c.role for c in seen.calls if c.images]
    return [] if "visual" in sent else ["the visual agent got no image"]


CHECKS = {
    check.__name__.replace("_", " "): check
    for check in (
        abbreviations,
        bought_reaches,
        continues,
        dearer_than_ask,
        ends_whole,
        free,
        has_estimate,
        limit_told,
        limited_means_cut,
        marked,
        more_room,
        no_empty_features,
        no_noise,
        not_cheaper,
        nothing_cut,
        quoted,
        review_events,
        same_language,
        stage_events,
        stages_told,
        steps_estimated,
        times_passed,
        told_unseen,
        visual_sees,
        whole_answer,
        whole_or_refused,
    )
}
