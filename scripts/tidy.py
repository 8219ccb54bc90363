#!/usr/bin/env python3
"""Runs clang-tidy on sources, and remembers which it found nothing in.

  scripts/tidy.py BUILD FILE...     BUILD holds compile_commands.json

A file is read again when it, a header of the tree that it includes, its options, .clang-tidy or clang-tidy itself
changed. What is remembered lies in $XDG_CACHE_HOME/assay-tidy (~/.cache/assay-tidy) and may be deleted at any time.
Exit status: 0 nothing found, 1 a finding, or a file that could not be read, 2 wrong usage.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "assay-tidy"


def options_of(entry):
    """The compiler's arguments without compiler, input and output."""
    arguments = shlex.split(entry["command"])
    while not arguments[0].startswith("-"):
        arguments.pop(0)
    kept, skip = [], False
    for argument in arguments:
        if skip or argument in ("-o", "-c"):
            skip = argument in ("-o", "-c") and not skip
            continue
        kept.append(argument)
    return kept


def headers_of(entry, options):
    """The files of the tree that the source is made of, itself among them."""
    rule = subprocess.run(["clang++", "-MM", "-Wno-everything", *options, entry["file"]], cwd=entry["directory"],
                          capture_output=True, text=True, check=True).stdout
    names = rule.replace("\\\n", " ").split()[1:]
    return sorted({str(pathlib.Path(entry["directory"], name).resolve()) for name in names})


def rules_of(file):
    """What .clang-tidy says in the file's folder and in those above it."""
    folders = [folder for folder in pathlib.Path(file).resolve().parents if folder == ROOT or ROOT in folder.parents]
    rules = [folder / ".clang-tidy" for folder in folders]
    return "".join(path.read_text() for path in rules if path.exists())


def key_of(entry, version):
    options = options_of(entry)
    state = hashlib.sha256()
    for text in (version, rules_of(entry["file"]), " ".join(options).replace(str(ROOT), "")):
        state.update(text.encode() + b"\0")
    for name in headers_of(entry, options):
        state.update(name.replace(str(ROOT), "").encode() + b"\0" + pathlib.Path(name).read_bytes() + b"\0")
    return state.hexdigest()


def read(build, entry, version):
    """What is wrong with a file, "" if nothing is; and whether clang-tidy had to read it."""
    try:
        known = CACHE / key_of(entry, version)
    except subprocess.CalledProcessError as error:
        return f"{entry['file']}: {error.stderr}", True
    if known.exists():
        return "", False
    run = subprocess.run(["clang-tidy", "-p", build, "--quiet", "--warnings-as-errors=*", entry["file"]],
                         capture_output=True, text=True)
    if run.returncode != 0:
        return run.stdout + run.stderr, True
    known.touch()
    return "", True


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    build, wanted = sys.argv[1], {str((ROOT / name).resolve()) for name in sys.argv[2:]}
    entries = {e["file"]: e for e in json.loads(pathlib.Path(build, "compile_commands.json").read_text())}
    missing = wanted - set(entries)
    if missing:
        print(f"not in {build}/compile_commands.json: {' '.join(sorted(missing))}", file=sys.stderr)
        sys.exit(2)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
    CACHE.mkdir(parents=True, exist_ok=True)
    findings = ran = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        tasks = [pool.submit(read, build, entries[name], version) for name in sorted(wanted)]
        for number, task in enumerate(concurrent.futures.as_completed(tasks), 1):
            finding, had_to_read = task.result()
            ran += had_to_read
            if finding:
                findings += 1
                print(finding, flush=True)
            if sys.stderr.isatty():
                print(f"\r{number} of {len(tasks)}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"clang-tidy read {ran} of {len(tasks)} files; {len(tasks) - ran} others had no finding before and "
          f"did not change")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
