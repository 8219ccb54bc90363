"""Every preset of CMakePresets.json configures and builds what its build preset names.

Usage: presets_test.py ROOT [PRESET...]. Builds into a temporary folder; takes most of an hour without a
compiler cache. A preset whose compiler is not installed is reported and left out.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
PRESETS = json.loads((ROOT / "CMakePresets.json").read_text())


def call(*command):
    done = subprocess.run([str(c) for c in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-8000:]}")
    return done.stdout


def main():
    compilers = {p["name"]: p.get("cacheVariables", {}).get("CMAKE_CXX_COMPILER") for p in PRESETS["configurePresets"]}
    wanted = [b for b in PRESETS["buildPresets"] if not sys.argv[2:] or b["name"] in sys.argv[2:]]
    unbuilt = {p["name"] for p in PRESETS["configurePresets"] if not p.get("hidden")} - {
        b["configurePreset"] for b in PRESETS["buildPresets"]}
    if unbuilt:
        sys.exit(f"presets that nothing builds: {', '.join(sorted(unbuilt))}")
    for preset in wanted:
        compiler = compilers[preset["configurePreset"]]
        if compiler and not shutil.which(compiler):
            print(f"{preset['name']}: left out, {compiler} is not installed", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="assay-preset-") as folder:
            call("cmake", "--preset", preset["configurePreset"], "-B", folder)
            targets = [part for target in preset.get("targets", []) for part in ("--target", target)]
            said = call("cmake", "--build", folder, *targets)
            warnings = [line for line in said.splitlines() if "warning:" in line]
            if warnings:
                sys.exit(f"{preset['name']} warns:\n" + "\n".join(warnings))
            print(f"{preset['name']}: built", flush=True)


main()
