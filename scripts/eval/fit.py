#!/usr/bin/env python3
"""Fits the calibration of final answers (`policy.calibration`) on recorded committees.

usage: fit.py DEBATES.jsonl [--conclave COMMAND] [--folds 8]      needs numpy

The engine's own features of the leading answer, as `conclave score` prints them, are set against whether that answer is
the reference. A logistic regression with a mild ridge gives the weights. Before that, cross-validation by prompt says
what to expect on other prompts: AUROC and calibration error for each set of rows and pooled. Prints the section for the
config file.
"""
import argparse
import datetime
import json
import shlex
import subprocess
import sys

import numpy as np

from measure import convert

FEATURES = ["support", "spread", "moved", "disputed", "hedged", "checked", "miscalculated", "notation",
            "argued", "minority"]
RIDGE = 1.0


def rows_of(path, command):
    data = [json.loads(line) for line in open(path, encoding="utf-8") if line.strip()]
    lines = "".join(json.dumps(convert("debate", row)) + "\n" for row in data)
    ran = subprocess.run(shlex.split(command), input=lines, capture_output=True, text=True, encoding="utf-8", check=True)
    values, right, prompts, sets = [], [], [], []
    for row, line in zip(data, ran.stdout.splitlines()):
        out = json.loads(line)
        if not out["answerGroups"]:
            continue
        leading = out["answerGroups"][0]
        of = {score["agent"]: score["features"] for score in out["scores"]}
        seen = [of[a] for a in leading["agents"] if "coherence.support" in of[a]]
        if not seen:
            continue
        values.append([np.mean([f[f"coherence.{name}"]["value"] for f in seen]) for name in FEATURES])
        right.append(leading["answer"] == row["reference"])
        prompts.append(row["prompt"])
        sets.append(row["domain"] + " " + row["source"].split("/")[-1])
    return np.array(values), np.array(right, float), np.unique(prompts, return_inverse=True)[1], np.array(sets)


def fitted(x, y):
    """Intercept and weights, by Newton's method on standardised features, given back in the features' own units."""
    mean, spread = x.mean(0), x.std(0) + 1e-9
    z = np.hstack([np.ones((len(x), 1)), (x - mean) / spread])
    ridge, w = np.diag([0.0] + [RIDGE] * x.shape[1]), np.zeros(x.shape[1] + 1)
    for _ in range(60):
        p = 1 / (1 + np.exp(-z @ w))
        w -= np.linalg.solve((z.T * (p * (1 - p))) @ z + ridge, z.T @ (p - y) + ridge @ w)
    own = w[1:] / spread
    return np.concatenate([[w[0] - own @ mean], own])


def predicted(x, w):
    return 1 / (1 + np.exp(-(w[0] + x @ w[1:])))


def auroc(y, p):
    a, b = p[y > 0.5], p[y < 0.5]
    if not len(a) or not len(b):
        return float("nan")
    return float(((a[:, None] > b).sum() + 0.5 * (a[:, None] == b).sum()) / (len(a) * len(b)))


def ece(y, p):
    bins = np.minimum(9, (p * 10).astype(int))
    return float(sum(abs((p - y)[bins == b].sum()) for b in range(10)) / len(y))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data")
    arguments.add_argument("--conclave", default="conclave score -")
    arguments.add_argument("--folds", type=int, default=8)
    given = arguments.parse_args()
    x, y, prompt, sets = rows_of(given.data, given.conclave)
    trials = []
    for seed in range(5):
        fold = np.random.RandomState(seed).permutation(prompt.max() + 1)[prompt] % given.folds
        p = np.zeros(len(y))
        for f in range(given.folds):
            p[fold == f] = predicted(x[fold == f], fitted(x[fold != f], y[fold != f]))
        trials.append(p)
    each = sorted(set(sets))
    for name in each:
        m = sets == name
        print(f"{name:44} n {m.sum():4}  right {y[m].mean():.3f}  AUROC {np.mean([auroc(y[m], p[m]) for p in trials]):.4f}"
              f"  ECE {np.mean([ece(y[m], p[m]) for p in trials]):.4f}", file=sys.stderr)
    mean = np.mean([[auroc(y[sets == s], p[sets == s]) for s in each] for p in trials])
    print(f"cross-validated by prompt: mean AUROC {mean:.4f}, pooled ECE {np.mean([ece(y, p) for p in trials]):.4f}", file=sys.stderr)
    weights = dict(zip(["intercept"] + FEATURES, (round(float(w), 3) for w in fitted(x, y))))
    about = {"fittedOn": datetime.date.today().isoformat(), "rows": len(y), "prompts": int(prompt.max() + 1)}
    print(json.dumps({"calibration": {**about, **weights}}, indent=2))


if __name__ == "__main__":
    main()
