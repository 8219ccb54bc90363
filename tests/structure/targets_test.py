"""naive, par and the shipped answers compile for every kind of x86-64 processor, with this machine's compiler.

Usage: targets_test.py ROOT. Skipped on other architectures. Nothing is run; other tests run the native build.
"""
import concurrent.futures
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
# The levels of the x86-64 psABI, and AVX-512 with only its foundation, as on Xeon Phi.
TARGETS = [["-march=x86-64"], ["-march=x86-64-v2"], ["-march=x86-64-v3"], ["-march=x86-64-v3", "-mavx512f"],
           ["-march=x86-64-v4"]]


def compiled(job):
    source, target = job
    challenge = ROOT / "challenges" / source.relative_to(ROOT).parts[1 if source.is_relative_to(ROOT / "challenges") else 2]
    command = ["g++", "-std=c++20", "-O2", *target, "-c", "-o", "/dev/null", f"-I{ROOT}/include", f"-I{ROOT}/challenges",
               f"-I{challenge}", f"-I{challenge}/baselines", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{source} {' '.join(target)}\n{done.stderr[:2000]}"


if platform.machine() not in ("x86_64", "AMD64"):
    print("skipped: not on x86-64")
    sys.exit(77)
sources = sorted([*ROOT.glob("challenges/*/baselines/naive.cpp"), *ROOT.glob("challenges/*/baselines/par.cpp")])
for model in ("textbook", "tuned"):
    sources += sorted(ROOT.glob(f"submissions/{model}/*/submission.cpp"))
jobs = [(source, target) for source in sources for target in TARGETS]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    failed = [said for said in pool.map(compiled, jobs) if said]
print(*failed, f"{len(jobs) - len(failed)} of {len(jobs)} compile", sep="\n")
sys.exit(bool(failed) or not jobs)
