"""Right answers stay well within the bounds, whatever the seed.

A bound that a plain answer meets by luck fails a right submission now and then. The naive and the
expert implementation of each challenge run all untimed cases with many seeds; no error may come
near its bound.

Usage: margins_test.py ASSAY_DIRECT ROOT [SEEDS]
"""
import pathlib
import re
import subprocess
import sys

MOST = 0.9  # of a bound
RESULT = re.compile(
    r"^\w+ +(?P<case>\S+) +(?P<verdict>OK|WA|RE|n/s) (?:.*? error +(?P<error>\S+) bound +(?P<bound>\S+))?")


def results(direct, challenge, source, seed):
    """Each case's name, verdict and error as a share of its bound, 0 if it has none."""
    done = subprocess.run([direct, challenge, source, "", str(seed)], capture_output=True, text=True, timeout=600)
    lines = done.stdout.splitlines()
    if not lines or not lines[-1].endswith(" failed"):
        sys.exit(f"{challenge}, {source.name}, seed {seed}: {done.stdout[-500:]}{done.stderr[-500:]}")
    for line in lines[:-1]:
        if found := RESULT.match(line):
            error, bound = (0.0 if text in (None, "-") else float(text) for text in found.group("error", "bound"))
            yield found["case"], found["verdict"], error / bound if bound > 0 else 0.0


def main():
    direct, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    bad = False
    for spec in sorted(root.glob("challenges/*/spec.json")):
        for name in ("naive.cpp", "par.cpp"):
            worst = {}
            for seed in range(1, seeds + 1):
                for case, verdict, share in results(direct, spec.parent.name, spec.parent / "baselines" / name, seed):
                    if verdict in ("WA", "RE"):
                        share = float("inf")
                    worst[case] = max(worst.get(case, (0.0, 0)), (share, seed))
            if not worst:
                sys.exit(f"{spec.parent.name}, {name}: no case was read")
            case, (share, seed) = max(worst.items(), key=lambda entry: entry[1])
            print(f"{spec.parent.name} {name}: at most {share:.2f} of a bound ({case}, seed {seed})", flush=True)
            for case, (share, seed) in sorted(worst.items()):
                if share > MOST:
                    bad = True
                    print(f"  {case} with seed {seed}: {'wrong' if share == float('inf') else f'{share:.2f}'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
