"""Kills `assay run` at random moments, hundreds of times, and resumes it: nothing that was finished is lost.

Usage: kill_test.py ASSAY ROOT [KILLS]. Uses only the standard library. Takes some minutes.
"""
import hashlib
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ASSAY, ROOT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(ROOT / "tests" / "support"))
import processes

KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 200
CHALLENGES = ("fused_softmax_topk", "layer_norm_backward")
MODELS = ("alice", "bob")
TIMED_FLAGS = {"stolen_time", "few_repetitions", "par_not_faster"}


def check(condition, message):
    if not condition:
        sys.exit(f"kill_test: {message}")


def submit(submissions):
    for model in MODELS:
        for challenge in CHALLENGES:
            source = (ROOT / "submissions" / "textbook" / challenge / "submission.cpp").read_text()
            folder = submissions / model / challenge
            folder.mkdir(parents=True)
            (folder / "submission.cpp").write_text(f"{source}// {model}\n")


def start(submissions, results, *options):
    command = [ASSAY, "--root", ROOT, "run", "--submissions", submissions, "--results", results, "--quick", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check_no_orphans():
    left = processes.orphans()
    check(not left, f"orphans survive: {left}")


def whole_lines(path):
    """A kill may tear the last line."""
    text = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]


def read_board(results):
    """{cell: row}, after checking every file of the folder."""
    rows = {}
    board = results / "scoreboard.json"
    entries = json.loads(board.read_text())["entries"] if board.exists() else []
    for entry in entries + whole_lines(results / "scoreboard.journal"):
        cell = entry["cell"]
        # A journal holds the machine itself; the board holds its name.
        rows[cell["model"], cell["challenge"]] = {key: entry[key] for key in ("cell", "score", "evidence")}
    for record in results.glob("runs/*.jsonl"):
        whole_lines(record)
    for evidence in results.glob("cells/**/*.json"):
        json.loads(evidence.read_text())
    return rows


def record_of(results, seed):
    """The lines of the run with that seed; empty if it was killed before it began."""
    for path in results.glob("runs/*.jsonl"):
        lines = whole_lines(path)
        if lines and lines[0]["seed"] == str(seed):
            return lines
    return []


def without_its_evidence(results, rows):
    def matches(row):
        path = results / row["evidence"]["path"]
        return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == row["evidence"]["sha256"]

    return [cell for cell, row in rows.items() if not matches(row)]


def untimed(rows):
    """The part of a board that does not depend on the clock or the seed."""
    def stable(row):
        dimensions = {d["name"]: (d["points"], d["why"]) for d in row["score"]["dimensions"]}
        dimensions = {name: dimensions[name] for name in ("correctness", "completeness")}
        cell = {key: row["cell"][key] for key in ("spec_hash", "source_hash", "isolation", "attempt", "device")}
        flags = {flag["kind"] for flag in row["score"]["flags"]} - TIMED_FLAGS
        return row["score"]["verdict"], row["score"]["capped"], flags, dimensions, cell

    return {cell: stable(row) for cell, row in rows.items()}


def finish(process):
    output, _ = process.communicate(timeout=600)
    check(process.returncode == 0, output)
    return output


def main():
    processes.adopt_orphans()
    seed = random.randrange(1 << 32)
    print(f"kill_test: {KILLS} kills, seed {seed}", flush=True)
    dice = random.Random(seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-kill-"))
    try:
        submissions, results = folder / "submissions", folder / "results"
        submit(submissions)
        finish(start(submissions, folder / "warm"))  # everything is compiled from here on
        began = time.monotonic()
        finish(start(submissions, folder / "calm"))
        longest = time.monotonic() - began
        calm = read_board(folder / "calm")
        check(len(calm) == len(MODELS) * len(CHALLENGES), "the undisturbed run is not whole")

        run_seed, begun, resumed, finished = 1, False, 0, 0
        stored = {}
        for kill in range(1, KILLS + 1):
            options = ["--resume"] if begun else ["--seed", str(run_seed)]
            process = start(submissions, results, *options)
            time.sleep(dice.uniform(0, longest))
            process.send_signal(signal.SIGKILL)
            output, _ = process.communicate()
            check_no_orphans()
            resumed += begun
            rows = read_board(results)
            now = {cell: row for cell, row in rows.items() if row["cell"]["seed"] == str(run_seed)}
            for cell, row in stored.items():
                check(now.get(cell) == row, f"kill {kill}: {cell} was on the board and is lost or measured again:\n"
                                            f"{row}\n{now.get(cell)}\n{output}")
            check(len(without_its_evidence(results, rows)) <= 1, f"kill {kill}: evidence of several cells is not theirs")
            check(process.returncode in (0, -signal.SIGKILL), output)
            stored, record = now, record_of(results, run_seed)
            begun = bool(record)
            if record[-1:] == [{"finished": True}]:  # the run finished before the kill
                check(len(now) == len(calm), f"kill {kill}: a finished run has {len(now)} cells\n{output}")
                run_seed, begun, stored, finished = run_seed + 1, False, {}, finished + 1
        if begun:
            finish(start(submissions, results, "--resume"))
        else:
            finish(start(submissions, results, "--seed", str(run_seed)))
        rows = read_board(results)
        for cell, row in stored.items():
            check(rows.get(cell) == row, f"{cell} was on the board and is lost or measured again")
        check({row["cell"]["seed"] for row in rows.values()} == {str(run_seed)}, "cells of several runs")
        check(untimed(rows) == untimed(calm), f"the board differs:\n{untimed(rows)}\n{untimed(calm)}")
        check(without_its_evidence(results, rows) == [], "evidence is missing")
        # .probe files test whether the folder is writable.
        left = [str(p) for p in results.rglob("*") if p.is_file() and p.suffix not in (".json", ".jsonl")
                and p.name != ".lock" and not p.name.startswith(".probe")]
        check(left == [], f"left behind: {left}")
        check(resumed > KILLS / 4, f"only {resumed} of {KILLS} kills met a resumed run: the moments are badly chosen")
        print(f"kill_test: all is there after {KILLS} kills, {resumed} of them of resumed runs; {finished} were too late")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
