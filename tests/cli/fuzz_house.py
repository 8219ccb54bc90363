"""Random draws find no fault in the shipped right implementations. Usage: fuzz_house.py ASSAY ROOT SECONDS"""
import json
import pathlib
import subprocess
import sys

ASSAY, ROOT, SECONDS = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]

failed = []
for spec in sorted(ROOT.glob("challenges/*/spec.json")):
    if "random" not in json.loads(spec.read_text()):
        continue
    name = spec.parent.name
    run = subprocess.run([ASSAY, "--root", ROOT, "fuzz", name, "--seconds", SECONDS], capture_output=True, text=True)
    print(f"{name}: status {run.returncode}\n{run.stdout}", flush=True)
    if run.returncode != 0:
        failed.append(name)
        print(run.stderr, flush=True)
print("findings in: " + ", ".join(failed) if failed else "no findings")
sys.exit(bool(failed))
