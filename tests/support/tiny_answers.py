"""Answers that compile almost instantly: every function reports that it is not supported.

Uses only the standard library.
"""
import fcntl
import json
import pathlib
import shutil
import subprocess
import tempfile

ENOTSUP = 2  # ASSAY_ENOTSUP


def source_of(root, challenge, remark):
    spec = json.loads((root / "challenges" / challenge / "spec.json").read_text())
    # The arguments are never looked at.
    functions = [f'extern "C" int {name}() {{ return {ENOTSUP}; }}\n' for name in spec["symbols"]["required"]]
    return "".join(functions) + f"// {remark}\n"


def challenges_of(root):
    return sorted(path.parent.name for path in root.glob("challenges/*/spec.json"))


def submit(root, submissions, models, challenges, same=False):
    """Gives each model an answer to each challenge. With `same` all answers are identical, so only one is built."""
    for model in models:
        for challenge in challenges:
            folder = submissions / model / challenge
            folder.mkdir(parents=True)
            (folder / "submission.cpp").write_text(source_of(root, challenge, "anybody" if same else model))


def warm_cache(assay, root, challenges, cache):
    """Makes a cache that holds the challenges' own implementations in C++. They are compiled once for all tests of one
    build of assay, and each gets a copy."""
    build = str(assay.stat().st_mtime_ns)
    kept = assay.parent / "tests" / "warm" / "-".join([build, *challenges])
    kept.parent.mkdir(parents=True, exist_ok=True)
    with open(kept.parent / "lock", "w") as lock, tempfile.TemporaryDirectory(prefix="assay-warm-") as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            for old in kept.parent.glob("*-*"):
                if not old.name.startswith(build):
                    shutil.rmtree(old)
            folder = pathlib.Path(folder)
            submit(root, folder / "submissions", ["anyone"], challenges)
            subprocess.run([assay, "--root", root, "run", "--submissions", folder / "submissions", "--results",
                            folder / "results", "--quick", "--cache", folder / "cache"], check=True, capture_output=True)
            shutil.move(folder / "cache", kept)
    shutil.copytree(kept, cache)
