"""The shipped board made suitable for tests: current, and with some evidence.

The repository holds no evidence, and after a change of the measurement revision its board is stale until
it is measured again. Tests of the commands that use a board depend on neither. They get a copy whose rows pass
for current, with the evidence of tests/support/evidence/: real documents of the sample entrants, cut down to
few repetitions and few counts.

As a program: shipped_board.py ROOT RESULTS. Uses only the standard library.
"""
import hashlib
import json
import pathlib
import re
import shutil
import sys


def revision_of(root):
    text = (root / "include" / "assay" / "revision.h").read_text()
    return int(re.search(r"kMeasurementRevision = (\d+);", text)[1])


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pass_for_todays(root, board):
    """Changes the rows of a parsed board so that none is stale."""
    sheets = {json.loads(p.read_text())["name"]: sha256(p) for p in root.glob("gpus/*.json")}
    for entry in board["entries"]:
        cell, score = entry["cell"], entry["score"]
        cell["revision"] = revision_of(root)
        cell["spec_hash"] = sha256(root / "challenges" / cell["challenge"] / "spec.json")
        if "modelled_on" in score:
            score["gpu_sheet"] = sheets[score["modelled_on"]]


def copy_results(root, results):
    """Makes a results folder with the board, published grades and the rankings."""
    shutil.copytree(root / "results", results, ignore=shutil.ignore_patterns("runs", "cells", "site", ".lock"))
    evidence = root / "tests" / "support" / "evidence"
    shutil.copytree(evidence, results / "cells")
    board = json.loads((results / "scoreboard.json").read_text())
    pass_for_todays(root, board)
    for entry in board["entries"]:
        path = results / entry["evidence"]["path"]
        if path.exists():
            entry["evidence"]["sha256"] = sha256(path)
    (results / "scoreboard.json").write_text(json.dumps(board, indent=1))


if __name__ == "__main__":
    copy_results(*map(pathlib.Path, sys.argv[1:]))
