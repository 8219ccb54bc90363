"""Real documents of a results folder, cut down to what a fuzzer changes fast, as a corpus.

The repository holds no evidence: where RESULTS has none, that of tests/support/evidence/ is used.

Usage: small_results.py board|evidence|run_record RESULTS CORPUS. Uses only the standard library.
"""
import json
import pathlib
import sys

KIND, RESULTS, CORPUS = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
MOST = 8  # documents


def write(name, text):
    (CORPUS / name).write_text(text)


def boards():
    board = json.loads((RESULTS / "scoreboard.json").read_text())
    for n, entry in enumerate(board["entries"][:MOST]):
        small = {**board, "machines": {entry["machine"]: board["machines"][entry["machine"]]}, "entries": [entry]}
        write(f"board-{n}", json.dumps(small))
        row = {"schema": board["schema"], **entry, "machine": board["machines"][entry["machine"]]}
        write(f"row-{n}", json.dumps(row))


def cells():
    kept = pathlib.Path(__file__).resolve().parent.parent / "support" / "evidence"
    for path in sorted(RESULTS.glob("cells/**/*.json")) or sorted(kept.glob("**/*.json")):
        cell = json.loads(path.read_text())
        # One case of each group, with few samples.
        groups = {case["group"]: case for case in cell["cell"]["cases"]}
        for case in groups.values():
            case["samples"] = case.get("samples", [])[:2]
        cell["cell"]["cases"] = list(groups.values())
        cell["cell"]["mutants"] = cell["cell"]["mutants"][:2]
        yield cell


def all_evidence():
    for n, cell in zip(range(MOST), cells()):
        write(f"cell-{n}", json.dumps(cell))


def boards_of_schema_1():
    for n, cell in zip(range(MOST), cells()):
        entry = {key: cell[key] for key in ("cell", "score", "assay", "machine")}
        write(f"schema-1-{n}", json.dumps({"schema": 1, "entries": [entry]}))


def records():
    board = json.loads((RESULTS / "scoreboard.json").read_text())
    first = board["entries"][0]
    start = {"schema": 2, "kind": "run", "run_id": "r", "started_at": "2026-01-01T00:00:00Z",
             "options": {"models": [], "quick": True}, "seed": first["cell"]["seed"],
             "machine": board["machines"][first["machine"]], "assay": first["assay"]}
    lines = [start]
    for entry in board["entries"][:MOST]:
        keys = ("model", "challenge", "attempt", "device", "spec_hash", "source_hash")
        lines.append({**{key: entry["cell"][key] for key in keys}, "verdict": entry["score"]["verdict"],
                      "total": entry["score"]["total"], "evidence": entry["evidence"], "arrival": "added"})
    for end in range(1, len(lines) + 1):
        write(f"record-{end}", "".join(json.dumps(line) + "\n" for line in lines[:end]))
    write("record-whole", "".join(json.dumps(line) + "\n" for line in [*lines, {"finished": True}]))


if KIND == "board":
    boards()
    boards_of_schema_1()
elif KIND == "evidence":
    all_evidence()
else:
    records()
