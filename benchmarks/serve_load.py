"""What `assay serve` does under load: latency by stage, answers a minute, memory, and what it leaves behind.

Usage: serve_load.py ASSAY ROOT [--smoke] [--quick] [--language cpp|cuda] [--soak REQUESTS] [COUNT]

COUNT answers (default 80) in each language, to all challenges in turn and each unlike the others, so that neither cache
helps: first right ones alone, the textbook's; then right, wrong, slow, hanging and not compiling ones. The stages are
build, core and all: every case, untimed, at its full size or with --quick at its small one. What one quick answer takes
by the service and by `assay grade` is measured one after the other. --soak sends so many quick answers instead, most of
them wrong, and prints what the service holds along the way: memory, processes, files, memory groups. In CUDA where nvcc
is found. Uses only the standard library.
"""
import argparse
import itertools
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2][len("Usage: "):])
parser.add_argument("assay", type=pathlib.Path)
parser.add_argument("root", type=pathlib.Path)
parser.add_argument("count", nargs="?", type=int, default=80)
parser.add_argument("--smoke", action="store_true")
parser.add_argument("--quick", action="store_true")
parser.add_argument("--language", choices=("cpp", "cuda"))
parser.add_argument("--soak", type=int, default=0)
arguments = parser.parse_intermixed_args()
SMOKE, ASSAY, ROOT = arguments.smoke, arguments.assay.resolve(), arguments.root.resolve()
sys.path[:0] = [str(ROOT / "clients" / "python"), str(ROOT / "tests" / "support")]
import assay_client  # noqa: E402
import processes  # noqa: E402

COUNT = 5 if SMOKE else arguments.count
QUICK = SMOKE or arguments.quick or arguments.soak > 0
NVCC = shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
FILES = {"cpp": "submission.cpp", "cuda": "submission.cu"}
SPECS = {path.parent.name: json.loads(path.read_text()) for path in sorted(ROOT.glob("challenges/*/spec.json"))}
STAGES = ["build", "core", "all"]
KINDS = ["right", "wrong", "slow", "hanging", "not compiling"]
SOAK_KINDS = ["wrong", "not compiling", "wrong", "wrong", "wrong", "not compiling", "wrong", "right"]


def stub(challenge, body):
    """An answer in which every function has this body. Their types are in abi.h."""
    symbols = "\n".join(f'extern "C" decltype({name}) {name} __attribute__((alias("stub")));'
                        for name in SPECS[challenge]["symbols"]["required"])
    return f'#include "abi.h"\nextern "C" int stub() {{\n  {body}\n  return ASSAY_OK;\n}}\n{symbols}\n'


def answer(challenge, name, kind):
    """The text of an answer. What differs from the right one is in the host part and the same in both languages."""
    if kind == "wrong":
        return stub(challenge, "")
    if kind == "hanging":
        return stub(challenge, "for (volatile long i = 0; i >= 0;) {}")
    right = (ROOT / "submissions" / "textbook" / challenge / name).read_text()
    if kind == "slow":
        return right + ("\nnamespace { const int dawdles = [] { for (volatile long i = 0; i < 100000000; i = i + 1) {} "
                        "return 0; }(); }\n")
    return right + ("\nint x = y;\n" if kind == "not compiling" else "")


def requests(name, kinds, count):
    """Pairs of kind and request: each kind meets each challenge, whatever their numbers."""
    pairs = itertools.cycle(itertools.product(SPECS, kinds))
    for n, (challenge, kind) in zip(range(count), pairs):
        yield kind, assay_client.request(challenge, files={name: f"{answer(challenge, name, kind)}\n// {n}\n"}, quick=QUICK,
                                         stages=STAGES, seed=n, client=f"client {n % 4}")


def resident_mib(pid):
    return processes.resident_bytes(pid) / 2**20


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def graded(client, chosen):
    """The tasks of these pairs, and the verdicts of each kind. Ends the program if one was not graded."""
    tasks = client.grade_batch(request for _, request in chosen)
    failed = [task.why for task in tasks if task.status != "done"]
    if failed:
        sys.exit(f"{len(failed)} tasks were not graded: {failed[0]}")
    verdicts = {}
    for (kind, _), task in zip(chosen, tasks):
        verdicts.setdefault(kind, set()).add(task.result["verdict"])
    return tasks, verdicts


def seconds_through(task, stages):
    """The seconds of the first `stages` stages, or None if the last of them was not reached."""
    ran = task.result["stages"][:stages]
    return None if ran[-1]["status"] == "not_run" else sum(s["seconds"] for s in ran)


def print_stages(tasks):
    print(f"{'stages':<20}{'p50 s':>8}{'p95 s':>8}{'answers':>9}")
    for n in range(1, len(STAGES) + 1):
        taken = [seconds for task in tasks if (seconds := seconds_through(task, n)) is not None]
        if taken:
            print(f"{'+'.join(STAGES[:n]):<20}{percentile(taken, 0.5):8.2f}{percentile(taken, 0.95):8.2f}{len(taken):9}")


def print_challenges(tasks):
    taken = {}
    for task in tasks:
        if (seconds := seconds_through(task, len(STAGES))) is not None:
            taken.setdefault(task.result["challenge"], []).append(seconds)
    print("all stages, p50 s: " + ", ".join(f"{name} {percentile(seconds, 0.5):.1f}" for name, seconds in taken.items()))


def load(client, pid, name, kinds, count):
    chosen = list(requests(name, kinds, count))
    before, begin = resident_mib(pid), time.monotonic()
    tasks, verdicts = graded(client, chosen)
    took = time.monotonic() - begin
    print(f"\n{name}, {', '.join(kinds)}: {len(tasks)} answers in {took:.1f} s, {60 * len(tasks) / took:.0f} a minute; "
          f"server's memory {before:.0f} MiB before, {resident_mib(pid):.0f} after")
    print("verdicts: " + ", ".join(f"{kind} {' or '.join(sorted(found))}" for kind, found in verdicts.items()))
    print_stages(tasks)
    print_challenges(tasks)


def overhead(client, name, folder, cache):
    """What the service adds to `assay grade` for one quick answer at a time, already built: the sum of the medians
    over all challenges."""
    served_sum = alone_sum = 0.0
    rounds = 1 if SMOKE else 5
    for challenge in list(SPECS)[:1] if SMOKE else SPECS:
        file = folder / name
        file.write_text(answer(challenge, name, "right"))
        command = [ASSAY, "--root", ROOT, "grade", file, "-c", challenge, "--stages", ",".join(STAGES), "--cache", cache, "--json",
                   "--quick"]
        served, alone = [], []
        for n in range(rounds + 1):
            begin = time.monotonic()
            client.grade(challenge, files={name: file.read_text()}, quick=True, stages=STAGES, seed=n)
            middle = time.monotonic()
            subprocess.run([*command, "--seed", str(n)], check=True, capture_output=True)
            if n > 0:  # the first builds
                served.append(middle - begin)
                alone.append(time.monotonic() - middle)
        served_sum += statistics.median(served)
        alone_sum += statistics.median(alone)
    print(f"{name}, one quick right answer to each challenge after the other: {served_sum:.2f} s served, {alone_sum:.2f} s by "
          f"assay grade, {served_sum / alone_sum:.2f} of it")


def memory_groups():
    """The number of memory groups in the kernel, anywhere."""
    return sum(len(folders) for _, folders, _ in os.walk("/sys/fs/cgroup"))


def footprint(pid, folder):
    """What the service holds once nothing is graded: memory, open files, threads, child processes, files of state and
    cache, shared memory, memory groups."""
    files = sum(len(names) for _, _, names in os.walk(folder))
    below = sum(len(path.read_text().split()) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"))
    return (resident_mib(pid), len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), below, files,
            len(os.listdir("/dev/shm")), memory_groups())


def soak(client, pid, name, folder, count):
    """Sends the answers in ten parts. One in a hundred hangs, each for as long as its first case may take."""
    chosen = list(requests(name, SOAK_KINDS, count))
    hanging = list(requests(name, ["hanging"], count))
    chosen[99::100] = hanging[99::100]
    part = max(1, len(chosen) // 10)
    print(f"\n{name}, soak with {len(chosen)} quick answers")
    print(f"{'answers':>8}{'a minute':>10}{'MiB':>8}{'open files':>12}{'threads':>9}{'processes':>11}{'files kept':>12}"
          f"{'shared':>8}{'groups':>8}")
    for begin in range(0, len(chosen), part):
        start = time.monotonic()
        tasks, _ = graded(client, chosen[begin:begin + part])
        mib, *rest = footprint(pid, folder)
        print(f"{begin + len(tasks):8}{60 * len(tasks) / (time.monotonic() - start):10.0f}{mib:8.1f}"
              + "".join(f"{n:{width}}" for n, width in zip(rest, (12, 9, 11, 12, 8, 8))), flush=True)


def measure(client, server, folder):
    print(f"assay serve, {client.health()['jobs']} jobs, {os.cpu_count()} cores, "
          f"{'quick' if QUICK else 'full'} cases of {len(SPECS)} challenges")
    for language in [arguments.language] if arguments.language else FILES:
        name = FILES[language]
        if language == "cuda" and not NVCC:
            print("no nvcc: no answers in CUDA")
            continue
        if SMOKE and language == "cuda":  # all else was tried in C++
            load(client, server.pid, name, KINDS, COUNT)
            continue
        if arguments.soak or SMOKE:
            soak(client, server.pid, name, folder, 8 if SMOKE else arguments.soak)
        if not arguments.soak:
            load(client, server.pid, name, ["right"], 1 if SMOKE else COUNT)
            load(client, server.pid, name, KINDS, COUNT)
            overhead(client, name, folder, folder / "cache")


def main():
    processes.adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="assay-serve-load-") as place:
        folder = pathlib.Path(place)
        server = subprocess.Popen([ASSAY, "--root", ROOT, "serve", "--state", folder / "state", "--port", "0", "--cache",
                                   folder / "cache"], stdout=subprocess.PIPE, text=True)
        try:
            measure(assay_client.Client(server.stdout.readline().split()[-1]), server, folder)
        finally:
            server.send_signal(signal.SIGTERM)
            ended = server.wait(timeout=120)
        left = processes.orphans()
        print(f"\nprocesses left: {len(left)} {left if left else ''}")
        return 0 if ended == 128 + signal.SIGTERM and not left else 1


if __name__ == "__main__":
    sys.exit(main())
