"""How long grading one CUDA answer takes on the simulator, without its own tests; optionally compared with another
build.

Usage: cell_time.py ASSAY ROOT [--before ASSAY ROOT] [--smoke] [CHALLENGE ...]. Grades textbook's and tuned's answers.
First: with an empty cache, so naive.cu and par are compiled and simulated too. Edited: the same with one more comment.
With --before the two builds take turns, each with its own tree, so that ratios compare the same minutes. --smoke:
quick cells.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("assay", type=pathlib.Path)
parser.add_argument("root", type=pathlib.Path)
parser.add_argument("--before", nargs=2, type=pathlib.Path, metavar=("ASSAY", "ROOT"))
parser.add_argument("--smoke", action="store_true")
parser.add_argument("challenges", nargs="*")
given = parser.parse_intermixed_args()
BUILDS = [(given.assay.resolve(), given.root.resolve())]
if given.before:
    BUILDS.append(tuple(path.resolve() for path in given.before))
STAGES = "build,core,all,findings,time"


def seconds(build, answer, challenge, cache):
    assay, root = build
    command = [assay, "--root", root, "grade", answer, "--challenge", challenge, "--device", "sim", "--json",
               "--stages", STAGES, "--cache", cache, *(["--quick"] if given.smoke else [])]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    took = time.monotonic() - begin
    if done.returncode not in (0, 1):  # 1: a stage failed, which takes time all the same
        sys.exit(f"{challenge} was not graded:\n{done.stdout}{done.stderr}")
    return took


def measure(model, challenge):
    """The seconds of each build: first and edited."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="assay-cell-time-") as folder:
        answer = pathlib.Path(folder, "answer")
        shutil.copytree(BUILDS[0][1] / "submissions" / model / challenge, answer)
        for i, build in enumerate(BUILDS):
            rows.append([seconds(build, answer, challenge, pathlib.Path(folder, f"cache-{i}"))])
        with open(answer / "submission.cu", "a") as file:
            file.write("// edited\n")
        for i, build in enumerate(BUILDS):
            rows[i].append(seconds(build, answer, challenge, pathlib.Path(folder, f"cache-{i}")))
    return rows


if not shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin"):
    sys.exit("no nvcc: CUDA answers cannot be built here")
challenges = given.challenges or sorted(p.parent.name for p in BUILDS[0][1].glob("challenges/*/spec.json"))
print(f"seconds to grade a CUDA answer; {os.cpu_count()} cores")
ratio_title = "  first and edited, before / now" if given.before else ""
print(f"{'challenge':<24}{'model':<10}{'first':>8}{'edited':>8}{ratio_title}")
for name in challenges:
    for model in ("textbook", "tuned"):
        if not (BUILDS[0][1] / "submissions" / model / name / "submission.cu").exists():
            continue
        now, *before = measure(model, name)
        ratios = "".join(f"  {b / n:.2f}" for b, n in zip(before[0], now)) if before else ""
        print(f"{name:<24}{model:<10}" + "".join(f"{s:8.1f}" for s in now) + ratios, flush=True)
