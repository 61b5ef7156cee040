"""What the scripted models say: honest defaults built from a panel's facts, overlaid by the panel's own script.

Facts are a dict with these keys, all optional: `answer` (bare final answer), `wrong` (role to another
answer that it gives), `claims` ((topic, text, basis) of each), `own` (role to its own claims), `lone` (roles that make only these), `assumptions_of` (by role), `basis`,
`summary`, `reasoning`, `assumptions`, `deliverables`, `failures`, `reply`, `tldr`, `ledger`
((text, kind)), `tests`, `steps` ((name, O, M, P)), `unit`, `question`, `options`, `holds`, `evidence`,
`truth` (the right one of contested answers; "" if nobody can tell), `type`, `optional` (further agents),
`rounds`, `parts`, `correction` ((handle, text) as the plan call reads it), `supplies`.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from upstream import Call, Fail, Late, Raw

BASIS = {"calculated": "calculation", "tested": "test", "sourced": "source", "given": "given", "memory": "memory"}
GENERIC_OPTIONS = [
    "A the first reading: the answer stays as it is",
    "B the second reading: the answer changes",
    "C neither: the answer has to be worked out again",
]


def respond(script: dict, facts: dict, call: Call, count: int) -> Any:
    """Gives the scripted answer to a call; `count` is how many calls of its kind came before in this turn."""
    names = [f"{call.kind}:{call.role}", call.kind] if call.role else [call.kind]
    value: Any = None
    for name in names:
        if name in script:
            value = script[name]
            break
    if isinstance(value, list):
        value = value[min(count, len(value) - 1)]
    return settle(value, facts, call)


def settle(value: Any, facts: dict, call: Call) -> Any:
    """Completes a scripted value: a dict is laid over the default, nothing means the default."""
    if callable(value):
        value = value(call)
    if isinstance(value, Late):
        return Late(value.seconds, settle(value.value, facts, call))
    if isinstance(value, (Raw, Fail)):
        return value
    base = default(facts, call)
    if isinstance(base, Raw):
        return base if value is None else value
    return fit(overlay(base, value or {}), call.schema)


def overlay(base: Any, over: Any) -> Any:
    """Lays a dict over another one, level by level."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{k: overlay(base.get(k), v) for k, v in over.items()}}
    return copy.deepcopy(over)


def default(facts: dict, call: Call) -> Any:
    """The honest answer to a call."""
    kind = call.role if call.kind == "repair" else call.kind
    if kind in ("solver", "critic", "verifier", "editor", "implementer", "visual", "agent"):
        value = shortened(report(facts, call.role), call)
        return {**value, **missing(value, facts, call)}
    makers = {
        "plan": plan,
        "cross-check": cross_check,
        "decisions": decisions,
        "synthesis": synthesis,
        "question": question,
        "estimate": estimate,
        "continuation": continuation,
    }
    return makers.get(kind, readings)(facts, call)


def shortened(value: dict, call: Call) -> dict:
    """Keeps a report within the words that its prompt allows: for the reasoning, or a smaller number for all."""
    usual = call.usual_words or 350
    value["reasoning"] = first_words(value["reasoning"], usual)
    if call.words and call.words < usual:
        share = call.words / usual
        for name in ("assumptions", "stepsOrDeliverables", "failureModes", "units"):
            value[name] = value[name][: max(2, int(len(value[name]) * share))]
        rest = sum(words(str(v)) for k, v in value.items() if k != "reasoning")
        value["reasoning"] = first_words(value["reasoning"], max(20, call.words - rest))
    return value


def missing(value: dict, facts: dict, call: Call) -> dict:
    """What an agent lacks, where its schema has a field for that."""
    fields = {n: resolve(f, call.schema) for n, f in call.schema.get("properties", {}).items() if n not in value}
    lacks = facts.get("lacks") and facts["lacks"] in str(value)
    return {
        n: [facts["lacks"]] if f.get("type") == "array" else facts["lacks"]
        for n, f in fields.items()
        if lacks and re.search(r"(?i)missing|lack|needs", n) and f.get("type") != "boolean"
    }


def first_words(text: str, count: int) -> str:
    return " ".join(re.split(r" +", text)[:count])


# ---------------------------------------------------------------- each kind


def plan(facts: dict, call: Call) -> dict:
    mode = (re.search(r"(?i)mode:\s*(ask|audit|deep)", call.text) or [None, "ask"])[1]
    value = {
        "taskType": facts.get("type", "VERBAL_REASONING"),
        "agentsToRun": ["solver", "critic", "verifier", *facts.get("optional", [])],
        "rounds": facts.get("rounds", {"ask": 1, "audit": 2, "deep": 3}[mode]),
        "needsClarification": False,
        "clarificationQuestion": None,
        "outputShape": mode,
        "demands": [],
    }
    return {**value, **readings(facts, call)}


def readings(facts: dict, call: Call) -> dict:
    """Fills fields that read what a user says to an earlier reply, whatever they are called."""
    if "correction" in facts and facts["correction"][1][:20] in call.text:
        pattern, pair = (
            r"(?i)correct|contradict|denie|reading|refers|earlier|previous|follow|handle|meant",
            facts["correction"],
        )
    elif "supplies" in facts and facts["supplies"][:20] in call.text:
        pattern, pair = r"(?i)suppl|provid|settle|reading|meant", ("", facts["supplies"])
    else:
        return {}
    fields = call.schema.get("properties", {})
    return {
        n: shaped(n, resolve(f, call.schema), pair, call.schema) for n, f in fields.items() if re.search(pattern, n)
    }


def shaped(name: str, field: dict, pair: tuple[str, str], root: dict) -> Any:
    """Puts a handle and a text into the form that a schema asks for."""
    kinds = field.get("type") if isinstance(field.get("type"), list) else [field.get("type")]
    if "enum" in field:
        return next((v for v in field["enum"] if "correct" in str(v).lower() and pair[0]), field["enum"][0])
    if "array" in kinds:
        return [shaped(name, resolve(field.get("items", {}), root), pair, root)]
    if "object" in kinds:
        return {n: shaped(n, resolve(f, root), pair, root) for n, f in field.get("properties", {}).items()}
    if "boolean" in kinds:
        return True
    if "integer" in kinds or "number" in kinds:
        return int(re.sub(r"\D", "", pair[0]) or 0)
    return pair[0] if re.search(r"(?i)handle|assumption|id$|which", name) else pair[1]


def report(facts: dict, role: str) -> dict:
    """An agent's report: the answer first, then the claims, in the agent's own order."""
    answer = facts.get("wrong", {}).get(role, facts.get("answer", ""))
    units = []
    if answer:
        units.append(
            {
                "topic": facts.get("topic", "answer"),
                "text": answer,
                "tags": ["answer", "key", facts.get("basis", "calculated")],
            }
        )
    claims = [*facts.get("own", {}).get(role, []), *([] if role in facts.get("lone", ()) else facts.get("claims", []))]
    units += [{"topic": t, "text": x, "tags": ["key", b] if i < 3 else [b]} for i, (t, x, b) in enumerate(claims[:7])]
    for number, unit in enumerate(units, 1):
        unit["id"] = f"u{number}"
    summary = list(facts.get("summary") or [c[1] for c in claims[:3]])
    if answer:
        summary = [f"{facts.get('lead', 'The answer is')} {answer}."] + summary
    return {
        "agent": role or "solver",
        "answerSummary": summary[:5],
        "assumptions": list(facts.get("assumptions_of", {}).get(role, facts.get("assumptions", [])))[:6],
        "reasoning": facts.get("reasonings", {}).get(role) or facts.get("reasoning") or " ".join(c[1] for c in claims),
        "stepsOrDeliverables": list(facts.get("deliverables") or [s[0] for s in facts.get("steps", [])])[:12],
        "failureModes": list(facts.get("failures", []))[:5],
        "units": units,
        "selfConfidence": 0.75,
    }


def claims_in(text: str) -> list[tuple[str, str, str, bool]]:
    """Reads the claims of a cross-check: id, report, text and whether it is a final answer."""
    found = re.findall(r"(?m)^\W*([A-Z]+\d+)\.(\w+)\s*(?:\(([^)]*)\))?\s*:?\s*(.+)$", text)
    return [(f"{r}.{n}", r, body.strip(), "answer" in tags) for r, n, tags, body in found]


def cross_check(facts: dict, call: Call) -> dict:
    """Compares answers and claims word by word; what differs from the truth does not hold."""
    claims = claims_in(call.text)
    reports = list(dict.fromkeys(c[1] for c in claims))
    answers = {c[1]: c[2].lower() for c in claims if c[3]}
    truth = facts.get("truth", facts.get("answer", "")).lower()
    verdicts = []
    for ident, mine, text, is_answer in claims:
        if is_answer:
            same = [r for r in reports if r != mine and answers.get(r) == text.lower()]
            other = [r for r in reports if r != mine and r in answers and answers[r] != text.lower()]
            holds = "unknown" if not truth and other else "yes" if not other or text.lower() == truth else "no"
            basis = facts.get("basis", "calculated")
        else:
            same = [i for i, r, t, _ in claims if r != mine and t == text]
            clash = facts.get("clash", [])
            other = [
                i
                for i, r, t, _ in claims
                if r != mine and any({a, b} <= {piece(t, a, b), piece(text, a, b)} for a, b in clash)
            ]
            holds = "unknown" if other else "yes"
            basis = next((b for _, t, b in facts.get("claims", []) if t == text), "given")
        verdicts.append(
            {
                "claim": ident,
                "supportedBy": same,
                "contradictedBy": other,
                "holds": facts.get("holds", holds),
                "by": BASIS.get(basis, "source"),
                "evidence": facts.get("evidence", text[:90]),
            }
        )
    groups: dict[str, list[str]] = {}
    for name, answer in answers.items():
        groups.setdefault(answer, []).append(name)
    parts = [{"part": p, "answeredBy": reports} for p in facts.get("parts", ["the question"])]
    return {
        "claims": verdicts,
        "sameAnswers": [g for g in groups.values() if len(g) > 1],
        "parts": parts,
        "reports": [
            {"report": r, "kind": "lacks", "why": facts["lacks"]}
            for r in reports
            if facts.get("lacks") and facts["lacks"] in reported(call.text, r)
        ],
    }


def reported(text: str, report: str) -> str:
    """The block of one report in a cross-check."""
    found = re.search(rf"(?s)REPORT {report}\b(.*?)(?:REPORT [A-Z]+\d|\Z)", text)
    return found[1] if found else ""


def piece(text: str, a: str, b: str) -> str:
    return a if a in text else b if b in text else ""


def decisions(facts: dict, call: Call) -> dict:
    """Concedes to the right answer where one is known, keeps the own claim otherwise."""
    truth = facts.get("truth", facts.get("answer", ""))
    made = []
    for claim in sorted(set(re.findall(r"\bC\d+\b", call.text)), key=lambda c: int(c[1:])):
        block = re.search(rf"\b{claim}\b(.*?)(?=\bC\d+\b|\Z)", call.text, re.S)
        letters = re.findall(r"(?m)^\W*([A-Z])[\s:.)]+(.+)$", block[1] if block else "")
        right = next((l for l, t in letters if truth and t.strip().lower().startswith(truth.lower())), "")
        ground = facts.get("evidence", "The calculation in the report holds.")
        made.append(
            {
                "claim": claim,
                "decision": "concede" if right else "keep",
                "to": right,
                "by": "calculation",
                "evidence": ground,
            }
        )
    return {"decisions": made}


def synthesis(facts: dict, call: Call) -> dict:
    """The master's reply, from the same facts."""
    answer = facts.get("answer", "")
    units = list(dict.fromkeys(re.findall(r'"id":\s*"(\w+:\w+)"', call.text)))
    meta = {
        "taskType": facts.get("type", "VERBAL_REASONING"),
        "tldr": facts.get("tldr") or facts.get("summary", [])[:1] or [answer + "."],
        "finalAnswer": answer,
        "assumptions": [{"text": t, "kind": k} for t, k in ledger(facts)],
        "acceptanceTests": list(facts.get("tests", [])),
        "planUnit": facts.get("unit", "hours"),
        "planSteps": [{"step": s, "o": o, "m": m, "p": p} for s, o, m, p in facts.get("steps", [])],
        "planAssumptions": list(facts.get("planAssumptions", [])),
        "planRisks": list(facts.get("risks", [])),
        "planConfidence": 0.7 if facts.get("steps") else 0,
    }
    audit = {
        "unitsUsed": units[:4],
        "disagreements": [],
        "answerJustification": facts.get("justification", ""),
        "conflictPenalty": facts.get("penalty", 0),
        "coverageBonus": 0.1,
        "quarantineJustifications": justified(call),
        "fallbackQuestion": question(facts, call),
    }
    return {"replyMarkdown": length_told(facts, call), "meta": meta, "audit": audit}


def ledger(facts: dict) -> list[tuple[str, str]]:
    return facts.get("ledger") or [(a, "guess") for a in facts.get("assumptions", [])]


def justified(call: Call) -> list[dict]:
    return [
        {"agent": a, "why": "Its figure was recalculated and holds."}
        for a in re.findall(r"(?m)^(\w+): QUARANTINE", call.text)
    ]


def length_told(facts: dict, call: Call) -> str:
    """Writes the reply; one given as paragraphs is as long as the prompt allows, or all of it."""
    reply = facts.get("reply", "")
    if isinstance(reply, str):
        return reply
    limit = call.words if facts.get("obeys", True) else None
    kept: list[str] = []
    for paragraph in reply[:-1]:
        if limit and words(" ".join([*kept, paragraph, reply[-1]])) > limit:
            break
        kept.append(paragraph)
    return "\n\n".join([*kept, reply[-1]])


def words(text: str) -> int:
    """Counts words; two characters of a script without spaces count as one."""
    wide = len(re.findall(r"[\u3040-\u30ff\u4e00-\u9fff]", text))
    return len(re.sub(r"[\u3040-\u30ff\u4e00-\u9fff]+", " ", text).split()) + wide // 2


def question(facts: dict, call: Call) -> dict:
    return {
        "question": facts.get("question", "Which of the readings is meant?"),
        "options": list(facts.get("options", GENERIC_OPTIONS)),
    }


def estimate(facts: dict, call: Call) -> dict:
    """Times for exactly the steps that the request names, in their order."""
    named = re.findall(r"(?m)^\W{0,3}\d+[.)] (.+)$", call.text) or [s[0] for s in facts.get("steps", [])]
    times = facts.get("steps") or [("", 1, 2, 4)]
    steps = [{"step": name, **dict(zip("omp", times[i % len(times)][1:]))} for i, name in enumerate(named)]
    value: dict[str, Any] = {}
    for name, field in call.schema.get("properties", {}).items():
        if field.get("type") == "array" and re.search("(?i)step", name):
            value[name] = steps
        elif re.search("(?i)unit", name):
            value[name] = facts.get("unit", "hours")
        elif re.search("(?i)confidence", name):
            value[name] = 0.7
    return value


def continuation(facts: dict, call: Call) -> Any:
    """Goes on after the last paragraph that the call shows whole, within the words that it allows."""
    reply = facts.get("reply", "")
    paragraphs = reply if isinstance(reply, list) else reply.split("\n\n")
    at = max((i for i, p in enumerate(paragraphs) if p[:40] in call.text and p[-40:] in call.text), default=-1)
    kept: list[str] = []
    for paragraph in paragraphs[at + 1 :] or paragraphs[-1:]:
        if kept and call.words and words(" ".join([*kept, paragraph])) > call.words:
            break
        kept.append(paragraph)
    rest = "\n\n".join(kept)
    fields = call.schema.get("properties", {})
    if {"replyMarkdown", "meta"} <= set(fields):
        return {**synthesis(facts, call), "replyMarkdown": rest}
    name = next((n for n in fields if re.search(r"(?i)markdown|continu|rest|text", n)), "")
    return {name: rest} if name else Raw(rest)


# ---------------------------------------------------------------- forms


def resolve(field: dict, root: dict) -> dict:
    """Follows a reference and picks the first variant that is not null."""
    while "$ref" in field:
        field = root.get("$defs", {}).get(field["$ref"].split("/")[-1], {})
    for name in ("anyOf", "oneOf"):
        if name in field:
            return resolve(next((v for v in field[name] if v.get("type") != "null"), {}), root)
    return field


def fit(value: Any, schema: dict) -> Any:
    """Adds what a newer schema requires and the script does not know, and drops what it does not allow."""
    if not isinstance(value, dict) or not schema.get("properties"):
        return value
    known = schema["properties"]
    kept = {k: v for k, v in value.items() if k in known}
    for name in schema.get("required", list(known)):
        if name not in kept:
            kept[name] = empty(known[name], schema)
    for name in kept:
        field = resolve(known[name], schema)
        if isinstance(kept[name], dict):
            kept[name] = fit(kept[name], {**field, "$defs": schema.get("$defs", {})})
        elif isinstance(kept[name], list) and field.get("items"):
            item = {**resolve(field["items"], schema), "$defs": schema.get("$defs", {})}
            kept[name] = [fit(v, item) for v in kept[name]]
    return kept


def empty(field: dict, root: dict) -> Any:
    """The least value of a field."""
    if any(v.get("type") == "null" for v in field.get("anyOf", [])):
        return None
    field = resolve(field, root)
    kind = field.get("type")
    if "enum" in field or "const" in field:
        return field.get("const", field.get("enum", [None])[0])
    if isinstance(kind, list):
        return None if "null" in kind else empty({**field, "type": kind[0]}, root)
    if kind == "object":
        return {n: empty(f, root) for n, f in field.get("properties", {}).items() if n in field.get("required", [])}
    return {"array": [], "string": "", "boolean": False, "number": 0, "integer": 0}.get(kind)
