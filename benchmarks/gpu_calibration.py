"""How the simulator's model orders answers in CUDA, beside what a real GPU measured: for each challenge, the
speeds relative to par of all answers of a board that have both.

Usage: gpu_calibration.py [SCOREBOARD.json]      (default: results/scoreboard.json)

It prints a table in Markdown; docs/simulator.md shows that of the shipped board.
"""
import json
import math
import pathlib
import sys

from gpu_table import kendall


def speeds(board):
    """(model, challenge, attempt, case) -> device -> speed relative to par."""
    found = {}
    for entry in board["entries"]:
        cell = entry["cell"]
        for speed in entry["score"].get("speeds", []):
            place = (cell["model"], cell["challenge"], cell["attempt"], speed["case"])
            if "ratio_to_par" in speed:
                found.setdefault(place, {})[cell["device"]] = speed["ratio_to_par"]
    return found


def table(board):
    pairs = {}
    for (model, challenge, attempt, _), of in sorted(speeds(board).items()):
        if {"sim", "cuda"} <= of.keys():
            pairs.setdefault(challenge, []).append((of["sim"], of["cuda"]))
    if not pairs:
        raise SystemExit("gpu_calibration.py: the board has no answer with speeds on sim and on cuda")
    lines = ["| challenge | speeds | tau | measured / modelled, geometric mean | lowest | highest |",
             "|---|--:|--:|--:|--:|--:|"]
    everything = [pair for some in pairs.values() for pair in some]
    for name, some in [*pairs.items(), ("all", everything)]:
        errors = [measured / modelled for modelled, measured in some]
        mean = math.exp(sum(map(math.log, errors)) / len(errors))
        lines.append(f"| {name} | {len(some)} | {kendall(some):.2f} | {mean:.2f} | {min(errors):.2f} | {max(errors):.2f} |")
    return "\n".join(lines)


def main():
    if len(sys.argv) > 2 or "-h" in sys.argv or "--help" in sys.argv:
        raise SystemExit(__doc__)
    root = pathlib.Path(__file__).resolve().parent.parent
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "results" / "scoreboard.json"
    print(table(json.loads(path.read_text())))


if __name__ == "__main__":
    main()
