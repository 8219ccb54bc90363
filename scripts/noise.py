#!/usr/bin/env python3
"""Grades the same submission several times in a row and prints how far the totals move.

Exit status: 0 when the grades hold still; 1 when a total moves by more than --points, or a letter
changes although some total is further than that from the boundary between the two; 2 when a run fails.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOUNDARIES = [90, 85, 80, 75, 70, 65, 60, 50]  # of the letters, as in src/grade/grade.cpp


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-m", "--model", action="append",
                   help="folder in submissions/ (default: tuned); may be repeated")
    p.add_argument("-c", "--challenge", action="append", help="only this challenge; may be repeated")
    p.add_argument("--device", choices=["cpu", "sim"], help="only answers that run there: C++ or CUDA")
    p.add_argument("-n", "--runs", type=int, default=5)
    p.add_argument("--points", type=float, default=2.0, help="how far a total may move (default: 2)")
    p.add_argument("--seed", help="of the hidden inputs (default: another for every run)")
    p.add_argument("--submissions", default=ROOT / "submissions", type=pathlib.Path)
    p.add_argument("--quick", action="store_true", help="quick runs, which are noisier")
    p.add_argument("--assay", default=ROOT / "build" / "assay", type=pathlib.Path)
    return p.parse_args()


def grade_once(args):
    """{answer: (score, cases)} of one run, whose results are thrown away."""
    with tempfile.TemporaryDirectory(prefix="assay-noise-") as results:
        command = [args.assay, "--root", ROOT, "run", "--submissions", args.submissions, "--results", results]
        for model in args.model or ["tuned"]:
            command += ["--model", model]
        for challenge in args.challenge or []:
            command += ["--challenge", challenge]
        if args.device:
            command += ["--device", args.device]
        if args.seed:
            command += ["--seed", args.seed]
        if args.quick:
            command.append("--quick")
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        board = pathlib.Path(results) / "scoreboard.json"
        if done.returncode != 0 or not board.exists():
            sys.stderr.write(done.stdout)
            sys.exit(2)
        evidence = [e["evidence"]["path"] for e in json.loads(board.read_text())["entries"]]
        entries = [json.loads((board.parent / path).read_text()) for path in evidence]
    return {name_of(e["cell"]): (e["score"], e["cell"]["cases"]) for e in entries}


def name_of(cell):
    """A model may answer a challenge several times, and in C++ and CUDA."""
    attempt = f"/{cell['attempt']}" if cell["attempt"] else ""
    device = "" if cell["device"] == "cpu" else f" ({cell['device']})"
    return f"{cell['model']}/{cell['challenge']}{attempt}{device}"


def letter_excused(scores, points):
    """Whether a change of letters is a change across a boundary that every total is close to."""
    totals = [s["total"] for s in scores]
    return any(max(abs(t - b) for t in totals) <= points for b in BOUNDARIES)


def changing_cases(cases_of_runs):
    """{case: verdicts} of cases whose verdict is not the same in every run."""
    verdicts = {}
    for cases in cases_of_runs:
        for case in cases:
            verdicts.setdefault(case["name"], []).append(case["verdict"])
    return {name: v for name, v in verdicts.items() if len(set(v)) > 1}


def report(name, scores, cases, points):
    if any(s["total"] is None for s in scores):
        print(f"{name}: a run without a total")
        return False
    totals = [s["total"] for s in scores]
    letters = [s["letter"] for s in scores]
    spread = max(totals) - min(totals)
    problems = []
    if spread > points:
        problems.append(f"moves by more than {points:g} points")
    if len(set(letters)) > 1 and not letter_excused(scores, points):
        problems.append("changes its letter")
    runs = "  ".join(f"{t:5.1f} {l}" for t, l in zip(totals, letters))
    print(f"{name:<32} {runs}   spread {spread:.2f}{'  ' + ', '.join(problems) if problems else ''}")
    for i, dimension in enumerate(scores[0]["dimensions"]):
        points_of = [s["dimensions"][i]["points"] or 0 for s in scores]
        if max(points_of) - min(points_of) > 0.05:
            print(f"    {dimension['name']:<20} " + "  ".join(f"{p:7.2f}" for p in points_of))
    for case, verdicts in changing_cases(cases).items():
        print(f"    {case}: " + "  ".join(verdicts))
    return not problems


def grade_text(score):
    return "not graded" if score["total"] is None else f"{score['total']:.1f} {score['letter']}"


def main():
    args = parse_arguments()
    runs = []
    for i in range(args.runs):
        runs.append(grade_once(args))
        print(f"run {i + 1}: " + ", ".join(f"{c} {grade_text(s)}" for c, (s, _) in sorted(runs[-1].items())), flush=True)
    good = [report(c, [run[c][0] for run in runs], [run[c][1] for run in runs], args.points) for c in sorted(runs[0])]
    return 0 if good and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
