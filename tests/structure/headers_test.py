"""Each header compiles alone, as the first include of its .cpp or here; each challenge's abi.h compiles as C11 and
C++20.

Usage: headers_test.py ROOT BUILD. Uses ccache where it is installed, so unchanged headers cost nothing.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, BUILD = map(pathlib.Path, sys.argv[1:])
INCLUDES = [f"-I{ROOT}/include", f"-I{ROOT}/src", f"-I{BUILD}/generated"]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
CACHE = [shutil.which("ccache")] if shutil.which("ccache") else []
ENVIRONMENT = {**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}


def built_alone(header):
    """Whether the build has checked it: a source of the same name includes it before anything else."""
    source = header.with_suffix(".cpp")
    first = re.search(r'^#include [<"](.*)[>"]', source.read_text(), re.M) if source.exists() else None
    return first is not None and first[1] == str(header.relative_to(ROOT / "src"))


jobs = []
# In the build folder: from there the relative paths that ccache hashes are the same in every clone.
with tempfile.TemporaryDirectory(prefix="headers-", dir=BUILD) as folder:
    for header in sorted([*ROOT.glob("include/**/*.h"), *ROOT.glob("src/**/*.h")]):
        if built_alone(header):
            continue
        name = "_".join(header.relative_to(ROOT).with_suffix("").parts)
        pathlib.Path(folder, f"{name}.cpp").write_text(f'#include "{header.relative_to(ROOT)}"\n')
        jobs.append([*CACHE, "g++", "-std=c++20", "-c", "-o", f"{name}.o", f"-I{ROOT}", *INCLUDES, f"{name}.cpp"])
    for header in sorted(ROOT.glob("challenges/*/abi.h")):
        jobs.append(["gcc", "-std=c11", *STRICT, f"-I{ROOT}/include", "-x", "c", str(header)])
        jobs.append(["g++", "-std=c++20", *STRICT, f"-I{ROOT}/include", "-x", "c++", str(header)])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda job: subprocess.run(job, cwd=folder, env=ENVIRONMENT, capture_output=True,
                                                           text=True), jobs))
failed = [(job, r) for job, r in zip(jobs, results) if r.returncode != 0]
for job, result in failed:
    print(job[-1], result.stderr[:800], sep="\n")
print(f"{len(jobs) - len(failed)} of {len(jobs)} headers stand alone")
sys.exit(bool(failed) or not jobs)
