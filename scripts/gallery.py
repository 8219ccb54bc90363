#!/usr/bin/env python3
"""Runs public CUDA programs that check their own results on the simulator and says what became of each.

The programs are not part of assay: the list names a repository and a commit, and --from the folder it was
fetched to.

  git clone https://github.com/NVIDIA/cuda-samples
  git -C cuda-samples checkout "$(scripts/gallery.py scripts/gallery/cuda-samples.json --commit)"
  scripts/gallery.py scripts/gallery/cuda-samples.json --from cuda-samples

right       the program ended with exit status 0, printed what the list says it prints, and no finding
finding     the simulator reports a defect of a kernel: a race, an access out of bounds, ...
refused     it needs what is not simulated, and the message names that
wrong       another exit status, a signal, or without the expected output
no build    nvcc or the linker failed
time        it was stopped after --limit seconds

scripts/gallery/cutlass.json is a list of NVIDIA's CUTLASS, which is at https://github.com/NVIDIA/cutlass.

The programs run with your rights, without isolation. They end when this script is stopped by Ctrl-C or SIGTERM.
Exit status: 0 if each became what the list expects, 1 if not, 2 if something is missing, 128 and the signal's
number if it was stopped.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLASSES = ["right", "finding", "refused", "wrong", "no build", "time"]
KEYS = {"folder", "sources", "arguments", "flags", "prints", "expect", "because"}  # of a program


class Unusable(Exception):
    """The list or the folder cannot be used; the text says why."""


class Stopped(BaseException):
    """A signal asks the script to end. Like KeyboardInterrupt, it is no error that a program could cause."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number


def stop(number, _frame):
    raise Stopped(number)


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Processes:
    """The processes that run now, each with a process group of its own, which no signal of the terminal reaches."""

    def __init__(self):
        self._lock = threading.Lock()
        self._running = set()
        self._ended = False

    def start(self, command, **options):
        with self._lock:
            if self._ended:
                raise Unusable("no more programs are started")
            process = subprocess.Popen(command, start_new_session=True, **options)
            self._running.add(process)
            return process

    def end(self, process):
        kill_group(process)
        process.wait()
        with self._lock:
            self._running.remove(process)

    def end_all(self):
        """Kills them, and starts none after that."""
        with self._lock:
            self._ended = True
            for process in self._running:
                kill_group(process)


PROCESSES = Processes()


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("list", type=pathlib.Path, help="such as scripts/gallery/cuda-samples.json")
    p.add_argument("--from", dest="folder", type=pathlib.Path, help="where the programs are")
    p.add_argument("--commit", action="store_true", help="only print the commit that the list is for")
    p.add_argument("--only", action="append", metavar="TEXT",
                   help="programs whose folder contains TEXT; may be repeated")
    p.add_argument("--limit", type=float, default=600, help="seconds for a program, its build included (default: 600)")
    p.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), help="programs at once (default: one a core)")
    p.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write what became of each to FILE as well")
    p.add_argument("--assay", default=ROOT / "build" / "assay", type=pathlib.Path)
    args = p.parse_args()
    if args.folder is None and not args.commit:
        p.error("--from is missing: the folder that the programs were fetched to")
    if args.jobs < 1:
        p.error("--jobs: at least 1")
    return args


def read_list(path):
    try:
        gallery = json.loads(path.read_text())
    except (OSError, ValueError) as e:
        raise Unusable(f"{path}: {e}") from e
    for key in ("commit", "programs"):
        if key not in gallery:
            raise Unusable(f"{path}: {key} is missing")
    for i, program in enumerate(gallery["programs"]):
        if "folder" not in program:
            raise Unusable(f"{path}: program {i + 1}: folder is missing")
        unknown = set(program) - KEYS
        if unknown:
            raise Unusable(f"{path}: {program['folder']}: unknown keys {', '.join(sorted(unknown))}")
        if program.get("expect", "right") not in CLASSES:
            raise Unusable(f"{path}: {program['folder']}: expect is one of {', '.join(CLASSES)}")
        if program.get("expect", "right") != "right" and "because" not in program:
            raise Unusable(f"{path}: {program['folder']}: because is missing: a part of the message")
    return gallery


def sources_of(program, folder):
    """The files that it names, or all of its folder."""
    if "sources" in program:
        found = [folder / name for name in program["sources"]]
    else:
        found = sorted(f for f in folder.iterdir() if f.suffix in (".cu", ".cpp")) if folder.is_dir() else []
    missing = [str(f) for f in found if not f.exists()]
    if missing or not found:
        raise Unusable(f"{', '.join(missing) or folder}: not there; is the folder of --from at the list's commit?")
    return found


def run(command, folder, limit, output):
    """(exit status or None when the time was up, what it printed). Its whole process group ends with it."""
    with open(output, "wb+") as printed:
        process = PROCESSES.start(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=printed)
        try:
            report, _ = process.communicate(timeout=limit)
            status = process.returncode
        except subprocess.TimeoutExpired:
            status, report = None, b""
        finally:
            PROCESSES.end(process)
        printed.seek(0)
        return status, report, printed.read().decode(errors="replace")


def first_error(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror\b|cannot find|undefined reference", line)]
    return (errors or lines or ["nothing was printed"])[0]


def classify(program, status, report, printed):
    """(class, why) of a run that ended."""
    if status is None:
        return "time", "stopped"
    try:
        document = json.loads(report)
    except ValueError:
        return "no build", first_error(printed)
    if document["unsupported"]:
        return "refused", document["unsupported"][0]
    if "not_loaded" in document["program"]:
        return "refused", document["program"]["not_loaded"]
    if document["findings"]:
        first = document["findings"][0]
        return "finding", f"{first['kind']} in {first['kernel']}: {first['text']}"
    if status != 0:
        last = printed.strip().splitlines()[-1:] or [""]
        return "wrong", f"exit status {status}: {last[0]}"
    if not re.search(program.get("prints", ""), printed):
        return "wrong", f"it does not print {program['prints']}"
    return "right", ""


def try_program(args, gallery, program, sources):
    root = args.folder.absolute()
    folder = root / program["folder"]
    flags = [flag.replace("{from}", str(root)) for flag in gallery.get("flags", []) + program.get("flags", [])]
    with tempfile.TemporaryDirectory(prefix="assay-gallery-") as scratch:
        command = [args.assay.resolve(), "sim", "--json", "--threads", "1", *[f"--nvcc-flag={f}" for f in flags], *sources]
        if "arch" in gallery:
            command[2:2] = ["--arch", gallery["arch"]]
        if program.get("arguments"):
            command += ["--", *program["arguments"]]
        began = time.monotonic()
        became, why = classify(program, *run(command, folder, args.limit, pathlib.Path(scratch) / "printed"))
    expected = program.get("expect", "right")
    good = became == expected and program.get("because", "") in why
    return {"folder": program["folder"], "class": became, "why": why, "expected": expected, "as_expected": good,
            "seconds": round(time.monotonic() - began, 1)}


def tell(result):
    mark = "" if result["as_expected"] else f"   expected: {result['expected']}"
    why = f"   {result['why']}" if result["why"] else ""
    print(f"{result['class']:<9}{result['seconds']:7.1f} s  {result['folder']}{mark}{why}", flush=True)


def main():
    args = parse_arguments()
    gallery = read_list(args.list)
    if args.commit:
        print(gallery["commit"])
        return 0
    if not os.access(args.assay, os.X_OK):
        raise Unusable(f"{args.assay} is missing: scripts/setup.sh builds it")
    programs = [p for p in gallery["programs"]
                if args.only is None or any(text in p["folder"] for text in args.only)]
    if not programs:
        raise Unusable("no program of the list has such a folder")
    # Before anything has run.
    found = [sources_of(program, args.folder.absolute() / program["folder"]) for program in programs]
    results = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        try:
            pending = [pool.submit(try_program, args, gallery, *each) for each in zip(programs, found)]
            for done in concurrent.futures.as_completed(pending):
                results.append(done.result())
                tell(results[-1])
        except BaseException:
            PROCESSES.end_all()
            pool.shutdown(cancel_futures=True)
            raise
    results.sort(key=lambda r: r["folder"])
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    counts = [(c, sum(r["class"] == c for r in results)) for c in CLASSES]
    print(f"{len(results)} programs: " + ", ".join(f"{n} {c}" for c, n in counts if n))
    unexpected = [r for r in results if not r["as_expected"]]
    for result in unexpected:
        tell(result)
    return 1 if unexpected else 0


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, stop)
    try:
        sys.exit(main())
    except Unusable as e:
        print(f"gallery: {e}", file=sys.stderr)
        sys.exit(2)
    except Stopped as e:
        print(f"gallery: stopped by {e}", file=sys.stderr)
        sys.exit(e.status)
