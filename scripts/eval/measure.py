#!/usr/bin/env python3
"""Measures the scoring engine on recorded outputs, or the extraction of JSON from them.

usage: measure.py TASK DATA.jsonl PRED.jsonl [--conclave COMMAND]

TASK is select, debate, checked, contradiction, refusal, injection, halu or badjson. "checked" uses
the debate rows with a truthful cross-check derived from their labels, to measure the engine with a
perfect cross-check. Each row becomes an input line of `conclave score` (SPEC 13.1), or for badjson
of crates/lenient-json/examples/extract.rs; --conclave replaces this command. The prediction for the
row is derived from the output line and written to PRED.jsonl, in the format that the
evaluation of the data set reads. The input has only the request and the texts of the agents: no
label, no reference, no model name. The exception is the cross-check of "checked".
"""
import argparse
import json
import re
import shlex
import subprocess
import sys

SCORE = "conclave score -"
EXTRACT = "cargo run --locked --release --quiet -p conclave-lenient-json --example extract"

# Unused: the question of a contradiction row is unknown, and its message is empty.
SAME_THING = "Two statements about one thing."


def convert(task, row):
    """Returns the input line for a row."""
    if task == "select":
        outputs = [{"agent": f"a{n}", "text": c["text"]} for n, c in enumerate(row["candidates"])]
        return {"id": row["id"], "message": row["prompt"], "outputs": outputs}
    if task == "debate":
        count = max(len(a["rounds"]) for a in row["agents"])
        rounds = [
            [{"agent": a["agent"], "text": a["rounds"][n]["text"]} for a in row["agents"] if n < len(a["rounds"]) and a["rounds"][n]]
            for n in range(count)
        ]
        return {"id": row["id"], "message": row["prompt"], "rounds": rounds}
    if task == "checked":
        return {**convert("debate", row), "crossCheck": truthful(row)}
    if task == "contradiction":
        outputs = [{"agent": "a", "text": row["a"]}, {"agent": "b", "text": row["b"]}]
        return {"id": row["id"], "message": "", "outputs": outputs}
    if task == "badjson":
        return {"id": row["id"], "input": row["input"]}
    message = row.get("prompt", "")
    return {"id": row["id"], "message": message, "outputs": [{"agent": "a", "text": row["text"]}]}


def truthful(row):
    """Returns a cross-check of the first round that knows which answers are right."""
    first = {a["agent"]: a["rounds"][0] for a in row["agents"] if a["rounds"] and a["rounds"][0]}
    given = {agent: said.get("answer") for agent, said in first.items()}
    verdicts = []
    for agent, said in first.items():
        others = [other for other in first if other != agent and given[other] is not None]
        verdicts.append({
            "claim": f"{agent}:u1",
            "supportedBy": [other for other in others if given[other] == given[agent]],
            "contradictedBy": [other for other in others if given[other] != given[agent]],
            "holds": "yes" if said["correct"] else "no",
            "by": "calculation",
            "evidence": "known from the label of the row",
        })
    return verdicts


def feature(score, name):
    return score["features"].get(name, {"value": 0.0})["value"]


def predict(task, out):
    """Returns the prediction for a row, from the output line."""
    if task == "badjson":
        return out
    scores = out["scores"]
    if task == "select":
        return {"id": out["id"], "scores": [s["cred"] for s in scores], "labels": [s["status"] for s in scores]}
    if task in ("debate", "checked"):
        groups = out["answerGroups"]
        return {"id": out["id"], "c_final": out["c_final"], "disagree": bool(out["disagreements"]),
                "answer": bare(groups[0]["answer"]) if groups else None}
    if task == "contradiction":
        return {"id": out["id"], "label": relation(out)}
    if task == "refusal":
        return {"id": out["id"], "score": refused(scores[0]), "status": scores[0]["status"]}
    if task == "injection":
        attack = max(feature(scores[0], f"compliance.{kind}") for kind in ("injection", "judge_attack", "leaked_prompt"))
        return {"id": out["id"], "score": attack, "status": scores[0]["status"]}
    return {"id": out["id"], "score": 1.0 - scores[0]["axes"]["verifiability"] / 25.0}


def bare(answer):
    """Returns a number as the references have it: without unit, separators and needless zeros."""
    found = re.fullmatch(r"[^\w.-]*(-?[\d,]*\.?\d+)(?: .*|[^\w]*)", answer)
    if not found:
        return answer
    number = found[1].replace(",", "")
    return re.sub(r"\.?0*$", "", number) if "." in number else number


def refused(score):
    """Returns how far screening scaled the output down for a refusal, 0 to 1."""
    scaled = [feature_of for name, feature_of in score["features"].items() if "refusal" in name or "declines" in name]
    return 1.0 - min((it["value"] for it in scaled), default=1.0)


def relation(out):
    """Returns how two outputs relate by their final answers. Only a cross-check can compare their claims."""
    if any(len(group["agents"]) == 2 for group in out["answerGroups"]):
        return "agree"
    if out["disagreements"]:
        return "contradict"
    return "unrelated"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("task", choices=["select", "debate", "checked", "contradiction", "refusal", "injection", "halu", "badjson"])
    arguments.add_argument("data")
    arguments.add_argument("predictions")
    arguments.add_argument("--conclave", help=f"how the engine is called; default: {SCORE}, for badjson {EXTRACT}")
    given = arguments.parse_args()
    rows = [json.loads(line) for line in open(given.data, encoding="utf-8") if line.strip()]
    lines = "".join(json.dumps(convert(given.task, row)) + "\n" for row in rows)
    command = shlex.split(given.conclave or (EXTRACT if given.task == "badjson" else SCORE))
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, encoding="utf-8")
    if ran.returncode:
        sys.stderr.write(ran.stderr)
        sys.exit(ran.returncode)
    with open(given.predictions, "w", encoding="utf-8") as out:
        for line in ran.stdout.splitlines():
            out.write(json.dumps(predict(given.task, json.loads(line))) + "\n")


if __name__ == "__main__":
    main()
