#!/usr/bin/env python3
"""scripts/licences.py TRIPLE: prints the licence texts of every crate in the default build for that target."""

import json
import pathlib
import subprocess
import sys

NAMES = ("license", "licence", "copying", "notice", "unlicense", "copyright")


def metadata(triple):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", triple]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def linked(data):
    """Returns the ids of the third-party packages in the program, without those of build scripts and tests."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    (start,) = [p["id"] for p in data["packages"] if p["name"] == "conclave"]
    seen, todo = set(), [start]
    while todo:
        identity = todo.pop()
        if identity in seen:
            continue
        seen.add(identity)
        todo += [d["pkg"] for d in nodes[identity]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
    return seen - set(data["workspace_members"])


def texts(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(f for f in folder.iterdir() if f.is_file() and f.name.lower().startswith(NAMES))
    return [f.read_text(errors="replace").strip() for f in files if f.suffix != ".rs"]


def main():
    data = metadata(sys.argv[1])
    ids = linked(data)
    packages = sorted((p for p in data["packages"] if p["id"] in ids), key=lambda p: (p["name"], p["version"]))
    by_text = {}
    print(f"Conclave contains these {len(packages)} crates. Below the list are the licence texts that they come with.\n")
    for package in packages:
        name = f"{package['name']} {package['version']}"
        found = texts(package)
        note = "" if found else "; the package has no text of it"
        print(f"- {name}: {package['license'] or 'see its text'}{note}; {package['repository'] or 'no address'}")
        for text in found:
            by_text.setdefault(text, []).append(name)
    for text, names in by_text.items():
        print(f"\n{'=' * 100}\n{', '.join(names)}\n{'=' * 100}\n\n{text}")


main()
