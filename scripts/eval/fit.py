#!/usr/bin/env python3
"""Fits the calibration of final answers (`policy.calibration`) on recorded committees.

usage: fit.py DEBATES.jsonl [--select SELECT.jsonl] [--conclave COMMAND]      needs numpy

The fit predicts whether the leading answer is the reference from one feature: its support, as
`conclave score` prints it. All sets of rows have the same weight, because a set with more rows is
not more similar to the next user's questions. Before the fit each set is left out once, to measure
AUROC and calibration error (ECE, 10 bins) of c_final on data that the fit has not seen. Each figure
comes with a trivial baseline: the share of the votes, and with --select "the longer answer wins".
Prints the section for the config file.
"""
import argparse
import datetime
import json
import shlex
import subprocess
import sys

import numpy as np

from measure import convert

RIDGE = 1.0


def scored(task, path, command):
    data = [json.loads(line) for line in open(path, encoding="utf-8") if line.strip()]
    lines = "".join(json.dumps(convert(task, row)) + "\n" for row in data)
    ran = subprocess.run(shlex.split(command), input=lines, capture_output=True, text=True, encoding="utf-8", check=True)
    return data, [json.loads(line) for line in ran.stdout.splitlines()]


def rows_of(path, command):
    values, votes, right, prompts, sets, most = [], [], [], [], [], []
    for row, out in zip(*scored("debate", path, command)):
        if not out["answerGroups"]:
            continue
        leading = out["answerGroups"][0]
        of = {score["agent"]: score["features"] for score in out["scores"]}
        seen = [of[a] for a in leading["agents"] if "coherence.support" in of[a]]
        if not seen:
            continue
        values.append(np.mean([f["coherence.support"]["value"] for f in seen]))
        votes.append(len(leading["agents"]) / len(out["scores"]))
        right.append(leading["answer"] == row["reference"])
        prompts.append(row["prompt"])
        sets.append(row["domain"] + " " + row["source"].split("/")[-1])
        most.append(out["baseScore"] + out["coverageBonus"])
    return tuple(map(np.array, (values, votes, np.array(right, float), sets, most))) + (len(set(prompts)),)


def fitted(x, y, weight):
    """Returns intercept and slope, by Newton's method."""
    z = np.column_stack([np.ones(len(x)), x])
    ridge, w = np.diag([0.0, RIDGE]), np.zeros(2)
    for _ in range(60):
        p = 1 / (1 + np.exp(-z @ w))
        w -= np.linalg.solve((z.T * (weight * p * (1 - p))) @ z + ridge, z.T @ (weight * (p - y)) + ridge @ w)
    return w


def predicted(x, w, most):
    return np.minimum(1 / (1 + np.exp(-(w[0] + x * w[1]))), most)


def auroc(y, p):
    a, b = p[y > 0.5], p[y < 0.5]
    if not len(a) or not len(b):
        return float("nan")
    return float(((a[:, None] > b).sum() + 0.5 * (a[:, None] == b).sum()) / (len(a) * len(b)))


def ece(y, p):
    bins = np.minimum(9, (p * 10).astype(int))
    return float(sum(abs((p - y)[bins == b].sum()) for b in range(10)) / len(y))


def selection(path, command):
    """Prints by set how often the better of two candidates has the higher Cred, and the longer text."""
    pairs = {}
    for row, out in zip(*scored("select", path, command)):
        label, candidates = row["metric"], row["candidates"]
        gap = 0.2 if label == "quality" else 0.5
        cred = [score["cred"] for score in out["scores"]]
        for a in range(len(candidates)):
            for b in range(a):
                better = float(candidates[a][label]) - float(candidates[b][label])
                if abs(better) > gap:
                    longer = len(candidates[a]["text"]) - len(candidates[b]["text"])
                    won = [0.5 + 0.5 * np.sign(better * by) for by in (cred[a] - cred[b], longer)]
                    pairs.setdefault(row["domain"], []).append(won)
    print("\nselect: pairs ranked rightly", file=sys.stderr)
    for domain, won in sorted(pairs.items()):
        print(f"{domain:44} pairs {len(won):5}  Cred {np.mean(won, 0)[0]:.3f}  longer wins {np.mean(won, 0)[1]:.3f}", file=sys.stderr)
    mean = np.mean([np.mean(won, 0) for won in pairs.values()], 0)
    print(f"{'mean of the sets':44} Cred {mean[0]:.3f}  longer wins {mean[1]:.3f}", file=sys.stderr)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data")
    arguments.add_argument("--select", help="rows to rank candidates on")
    arguments.add_argument("--conclave", default="conclave score -")
    given = arguments.parse_args()
    x, votes, y, sets, most, prompts = rows_of(given.data, given.conclave)
    names = sorted(set(sets))
    weight = np.array([1 / (sets == name).sum() for name in sets])
    weight *= len(y) / weight.sum()
    pooled, errors = np.zeros(len(y)), []
    print("each set left out of the fit once", file=sys.stderr)
    for name in names:
        m = sets == name
        pooled[m] = predicted(x[m], fitted(x[~m], y[~m], weight[~m]), most[m])
        errors.append(ece(y[m], pooled[m]))
        print(f"{name:44} n {m.sum():4}  right {y[m].mean():.3f}  mean c_final {pooled[m].mean():.3f}  AUROC {auroc(y[m], pooled[m]):.3f}"
              f"  (share of votes {auroc(y[m], votes[m]):.3f})  ECE {errors[-1]:.3f}  (share of votes {ece(y[m], votes[m]):.3f})", file=sys.stderr)
    print(f"{'all':44} n {len(y):4}  AUROC {auroc(y, pooled):.3f}  (share of votes {auroc(y, votes):.3f})  ECE pooled {ece(y, pooled):.3f}"
          f"  mean of the sets {np.mean(errors):.3f}", file=sys.stderr)
    if given.select:
        selection(given.select, given.conclave)
    intercept, support = fitted(x, y, weight)
    about = {"fittedOn": datetime.date.today().isoformat(), "rows": len(y), "prompts": prompts}
    print(json.dumps({"calibration": {**about, "intercept": round(float(intercept), 3), "support": round(float(support), 3)}}, indent=2))


if __name__ == "__main__":
    main()
