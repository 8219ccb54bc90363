#!/usr/bin/env python3
"""benchmarks/gpu_link on a driver that simulates a GPU: it measures, and prints a row for each count of launches.

Usage: gpu_link_test.py GPU_LINK ROOT DRIVER MANAGEMENT. Exits with status 77 if there is no nvcc.
"""
import pathlib
import subprocess
import sys

PROGRAM, ROOT, *LIBRARIES = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
sys.path.insert(0, str(ROOT / "tests" / "support"))
from open_copies import open_copies  # noqa: E402

driver, management = open_copies(*LIBRARIES)
done = subprocess.run([PROGRAM, "--smoke", "--driver", driver, "--management", management],
                      capture_output=True, text=True, timeout=240)
sys.stdout.write(done.stdout)
sys.stderr.write(done.stderr)
if done.returncode != 0:
    sys.exit(done.returncode)
rows = [line.split() for line in done.stdout.splitlines()[2:]]
if [row[0] for row in rows] != ["1", "4"] or not all(float(value) > 0 for row in rows for value in row):
    sys.exit("expected times of 1 and of 4 launches")
