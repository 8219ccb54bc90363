"""Layers only depend on lower ones, nothing in src/ names a challenge, and challenges see little of src/. Only one
table makes PV.

Usage: layers_test.py ROOT.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
# Folder of src -> folders and files it may include from, besides itself, util/ and include/assay.
ALLOWED = {
    "util": set(),
    "numerics": set(),
    "spec": set(),
    "records": {"spec", "sim/counters.h"},
    "draw": set(),
    "submission": {"records/entrant_json.h", "spec/json_schema.h"},
    "code": set(),
    "mutate": {"code", "submission", "spec/json_schema.h"},
    "intake": {"submission", "records/entrant_json.h"},
    "measure": set(),
    "sandbox": set(),
    "sim": set(),
    "wire": set(),
    "device": {"gpu", "sim", "wire", "records/gpu_state_json.h"},
    "gpu": set(),
    "worker": {"wire", "worker/adapter_registry.h", "processes/window.h", "device/remote_device.h",
               "sim/runtime/api.h", "sim/runtime/runtime.h"},
    "build": {"sandbox", "submission"},
    "processes": {"sandbox", "spec", "records", "wire", "sim/address_map.h", "sim/runtime/run_log.h"},
    "cases": {"processes", "build", "draw", "measure", "spec", "records"},
    "cells": {"cases", "processes", "build", "code", "mutate", "submission", "spec", "records",
              "numerics/jobs.h"},
    "task": {"build", "submission", "spec", "draw", "cells/run_options.h"},
    "session": {"cells", "cases", "submission", "spec", "numerics/jobs.h"},
    "slurm": set(),
    "check": {"cells", "cases", "submission", "spec", "build", "measure", "records", "grade", "report"},
    "serve": {"check", "cells", "cases", "build", "intake", "submission", "spec", "records", "grade"},
    "grade": {"measure", "spec", "records"},
    "attack": {"cells", "cases", "build", "sandbox", "submission", "spec", "measure", "grade"},
    "store": {"grade", "mutate/score.h", "spec", "records"},
    "ask": {"store/line_file.h", "submission", "numerics/jobs.h"},
    "agent": {"spec", "submission", "task"},
    "judge": {"ask", "compare/rank_correlation.h", "grade", "records", "spec", "store/cell_path.h", "submission",
              "numerics/jobs.h"},
    "compare": {"grade", "measure", "records", "spec"},
    "site": {"code", "compare", "grade", "measure", "report", "records", "spec", "store", "submission",
             "numerics/jobs.h"},
    "report": {"compare", "grade", "judge", "measure", "mutate/score.h", "records", "spec"},
}
# The files of these folders that may see the real world: all others know only interfaces, which tests fake.
BEHIND_INTERFACES = {"processes", "cases", "cells", "session"}
REAL_WORLD = {
    "processes/worker_process.h": {"src/cases/world.cpp", "src/processes/worker_process.cpp"},
    "processes/device_process.h": {"src/processes/worker_process.h", "src/processes/device_process.cpp"},
    "cases/challenge_registry.h": {"src/cases/world.cpp"},
}
# The same for the folders of src/sim. All of them see the files of src/sim itself, which define what a device is, does
# and counts. Of those files only device.cpp, which builds a device from the other folders, sees these.
SIM_ALLOWED = {
    "ptx": set(),
    "math": set(),
    "memory": set(),
    "execution": {"ptx", "math", "memory"},
    "operations": {"execution", "ptx", "math", "memory"},
    "decode": {"operations", "execution", "ptx", "math"},
    "device.cpp": {"decode", "execution", "ptx", "memory"},
    "runtime": {"ptx"},
}
# Everything that names the verdict PV: its name, its weight, and the only table that makes it, so that every violation
# of the protocol is in the table.
NAMES_PV = {"src/records/codes.cpp", "src/records/lookup.cpp", "src/processes/protocol_violation.h"}
# Folders that do not use util/. What crosses a process boundary and what simulates stand alone.
ALONE = {"sim", "wire"}


def permitted_in_sim(own, target):
    """What `own`, a folder or file of src/sim, may include."""
    folder, *rest = target.split("/")[1:]
    return not rest or folder == own or folder in SIM_ALLOWED.get(own, set())


def permitted(own, target):
    folder = target.split("/")[0]
    if folder == "util":
        return own not in ALONE
    if folder == "assay":
        # util knows no type of the domain.
        return own not in {"sim", "util"} or (own == "util" and target == "assay/error.h")
    return folder in {own} | ALLOWED[own] or target in ALLOWED[own]


# Sources that are compiled like an answer: naive and par, which are the ends of the scale, and examples. They see what
# a submission sees: the public headers and the files of their own folder.
ANSWERS = re.compile(r"abi\.h|(baselines|examples)/.*")
PUBLIC = {"assay/abi.h", "assay/attention.h"}


def seen_by_challenge(file, target):
    """Whether a file of a challenge, or of challenges/shared, may include something other than its own files."""
    own, *inside = file.relative_to(ROOT / "challenges").parts
    inside = "/".join(inside)
    if own == "shared" and inside.startswith("baselines/"):
        return target in PUBLIC | {"abi.h"}  # of the challenge that includes it
    if own != "shared" and ANSWERS.fullmatch(inside):
        return target in PUBLIC or (target.startswith("shared/baselines/") and (ROOT / "challenges" / target).exists())
    folder, exists = target.split("/")[0], lambda *place: ROOT.joinpath(*place, target).exists()
    if folder == "assay":
        return exists("include")
    if inside.startswith("worker/"):  # code that runs beside the submission
        return inside == "worker/witness.cpp" and target == "implementation.h"  # which the harness writes
    return (folder == "util" and exists("src")) or (folder == "shared" and exists("challenges"))


def own_file(file, target):
    """Looked up from the file, the challenge's folder or its baselines, without leaving that folder."""
    folder = ROOT / "challenges" / file.relative_to(ROOT / "challenges").parts[0]
    return any((base / target).exists() and (base / target).resolve().is_relative_to(folder.resolve())
               for base in (file.parent, folder, folder / "baselines"))


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
            if not permitted(own, target) or (own == "sim" and not permitted_in_sim(where.parts[2], target)):
                problems.append(f"{where} includes {target}")
        if own in BEHIND_INTERFACES and str(where) not in REAL_WORLD.get(target, {str(where)}):
            problems.append(f"{where} includes {target}, which world.h hides")
    if "Verdict::protocol_violation" in text and str(where) not in NAMES_PV:
        problems.append(f"{where} names Verdict::protocol_violation, which processes/protocol_violation.h makes")
    if own == "wire":
        for target in re.findall(r"#include <([^>]+)>", text):
            if not re.fullmatch(r"[a-z_]+", target):
                problems.append(f"{where} includes {target}, which is not of the standard library")

sources = [p for p in ROOT.glob("challenges/**/*") if p.suffix in {".cpp", ".h", ".cu", ".cuh"}]
for path in sorted(sources):
    for target in re.findall(r'#include "([^"]+)"', path.read_text()):
        if not own_file(path, target) and not seen_by_challenge(path, target):
            problems.append(f"{path.relative_to(ROOT)} includes {target}")

if not challenges:
    problems.append("no challenges found: wrong ROOT?")
print("\n".join(problems) or "layers hold")
sys.exit(bool(problems))
