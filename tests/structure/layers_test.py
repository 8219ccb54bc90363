"""Layers only look down, and nothing in src/ names a challenge. Usage: layers_test.py ROOT."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
# Folder of src -> folders it may include from, besides its own, util/ and include/assay.
ALLOWED = {
    "util": set(),
    "results": {"sim/counters.h"},
    "numerics": set(),
    "spec": set(),
    "submission": set(),
    "measure": set(),
    "sandbox": set(),
    "sim": set(),
    "device": {"sim"},
    "worker": {"run/wire.h", "run/adapter_registry.h", "device/remote_device.h", "sim/runtime/api.h", "sim/runtime/runtime.h"},
    "build": {"sandbox", "submission"},
    "run": {"sandbox", "build", "submission", "spec", "measure", "results", "device/protocol.h", "sim/address_map.h",
            "sim/runtime/run_log.h"},
    "grade": {"measure", "spec", "results"},
    "report": {"grade", "measure", "results", "spec"},
}

problems = []
challenges = [p.parent.name for p in ROOT.glob("challenges/*/spec.json")]
for path in sorted([*ROOT.glob("src/**/*.h"), *ROOT.glob("src/**/*.cpp"), *ROOT.glob("include/**/*.h")]):
    text = path.read_text()
    where = path.relative_to(ROOT)
    own = where.parts[1]
    for name in challenges:
        if where.parts[0] == "src" and re.search(rf"\b{name}\b", text):
            problems.append(f"{where} names the challenge {name}")
    for target in re.findall(r'#include "([^"]+)"', text):
        folder = target.split("/")[0]
        if where.parts[0] == "include":
            if folder != "assay":
                problems.append(f"{where} includes {target}")
        elif own in ALLOWED:
            permitted = folder in {own, "util", "assay"} | ALLOWED[own] or target in ALLOWED[own]
            permitted = permitted and not (own == "sim" and folder != "sim")
            if not permitted:
                problems.append(f"{where} includes {target}")

if not challenges:
    problems.append("no challenges found: wrong ROOT?")
print("\n".join(problems) or "layers hold")
sys.exit(bool(problems))
