"""How long `assay check` takes in an agent's loop: the first time, after an edit, and for the same answer again.

Usage: check_time.py ASSAY ROOT [--smoke] [CHALLENGE ...]. Runs the textbook's answers on the public cases, with a new
cache: the first check compiles naive and par too, while an edited answer is compiled alone. Prints the seconds of the
whole command. Includes CUDA if nvcc is found.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

arguments = sys.argv[1:]
SMOKE = "--smoke" in arguments
ASSAY, ROOT, *chosen = (a for a in arguments if a != "--smoke")
ASSAY, ROOT = pathlib.Path(ASSAY).resolve(), pathlib.Path(ROOT).resolve()
NVCC = shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
ROUNDS = 1 if SMOKE else 3
MAIN = {"cpu": "submission.cpp", "sim": "submission.cu"}


def seconds(answer, challenge, device, cache):
    begin = time.monotonic()
    done = subprocess.run([ASSAY, "--root", ROOT, "check", answer, "--challenge", challenge, "--device", device, "--json",
                           "--cache", cache], capture_output=True, text=True)
    took = time.monotonic() - begin
    if done.returncode != 0 or not json.loads(done.stdout)["passed"]:
        sys.exit(f"{challenge} on {device} does not pass:\n{done.stdout}{done.stderr}")
    return took


def measure(challenge, device):
    with tempfile.TemporaryDirectory(prefix="assay-check-time-") as folder:
        answer, cache = pathlib.Path(folder, "answer"), pathlib.Path(folder, "cache")
        shutil.copytree(ROOT / "submissions" / "textbook" / challenge, answer)
        first = seconds(answer, challenge, device, cache)
        edited, again = [], []
        for n in range(ROUNDS):
            with open(answer / MAIN[device], "a") as file:
                file.write(f"// edit {n}\n")
            edited.append(seconds(answer, challenge, device, cache))
            again.append(seconds(answer, challenge, device, cache))
        return first, statistics.median(edited), statistics.median(again)


challenges = chosen or sorted(p.parent.name for p in ROOT.glob("challenges/*/spec.json"))
print(f"seconds of assay check, median of {ROUNDS}; {os.cpu_count()} cores")
print(f"{'challenge':<24}{'device':<8}{'first':>8}{'edited':>8}{'again':>8}")
for challenge in challenges:
    for device in ("cpu",) if SMOKE else ("cpu", "sim"):
        if not (ROOT / "submissions" / "textbook" / challenge / MAIN[device]).exists() or (device == "sim" and not NVCC):
            continue
        print(f"{challenge:<24}{device:<8}" + "".join(f"{s:8.1f}" for s in measure(challenge, device)), flush=True)
