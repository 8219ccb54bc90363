"""What `assay serve` does under load: latency by stage, answers a minute, memory, and what it leaves running.

Usage: serve_load.py ASSAY ROOT [--smoke] [COUNT]. COUNT answers (default 100) in each language: right, wrong, slow,
hanging and not compiling ones in turn, each unlike the others, so that neither cache helps. The stages are build, core
and all, of a quick grade. The overhead is that of one answer over `assay grade` of the same, one after the other. In CUDA
where nvcc is found. Uses only the standard library.
"""
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

arguments = sys.argv[1:]
SMOKE = "--smoke" in arguments
ASSAY, ROOT, *count = (a for a in arguments if a != "--smoke")
ASSAY, ROOT = pathlib.Path(ASSAY).resolve(), pathlib.Path(ROOT).resolve()
sys.path[:0] = [str(ROOT / "clients" / "python"), str(ROOT / "tests" / "support")]
import assay_client  # noqa: E402
import processes  # noqa: E402

COUNT = 5 if SMOKE else int(count[0]) if count else 100
NVCC = shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
CHALLENGE, STAGES = "fused_softmax_topk", ["build", "core", "all"]
TEXTBOOK = ROOT / "submissions" / "textbook" / CHALLENGE
LOOP = "for (volatile long i = 0; {}; i = i + 1) {{}}"


def function(body):
    return ('#include "abi.h"\nextern "C" int softmax_topk(assay_ctx*, const stk_params* p, const void*, int32_t*, float*,\n'
            "                            float*) {\n" + body + "\n  return ASSAY_OK;\n}\n")


def answers(name):
    """By kind. What differs from right in the host's part is the same in both languages."""
    right = (TEXTBOOK / name).read_text()
    slow = right + f"\nnamespace {{ const int dawdles = [] {{ {LOOP.format('i < 100000000')} return 0; }}(); }}\n"
    return {"right": right, "wrong": function(""), "slow": slow, "hanging": function(LOOP.format("p->V > 0")),
            "not compiling": function("int x = y;")}


def requests(name, count):
    kinds = answers(name)
    for n in range(count):
        kind = list(kinds)[n % len(kinds)]
        yield kind, assay_client.request(CHALLENGE, files={name: f"{kinds[kind]}\n// {n}\n"}, quick=True, stages=STAGES,
                                         seed=n, client=f"client {n % 4}")


def resident_mib(pid):
    [line] = [s for s in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if s.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def load(client, pid, name):
    chosen = list(requests(name, COUNT))
    before, begin = resident_mib(pid), time.monotonic()
    tasks = client.grade_batch(request for _, request in chosen)
    took = time.monotonic() - begin
    failed = [task.why for task in tasks if task.status != "done"]
    if failed:
        sys.exit(f"{len(failed)} tasks were not graded: {failed[0]}")
    verdicts = {}
    for (kind, _), task in zip(chosen, tasks):
        verdicts.setdefault(kind, set()).add(task.result["verdict"])
    print(f"\n{name}: {len(tasks)} answers in {took:.1f} s, {60 * len(tasks) / took:.0f} a minute; "
          f"memory {before:.0f} MiB before, {resident_mib(pid):.0f} after")
    print("verdicts: " + ", ".join(f"{kind} {' or '.join(sorted(found))}" for kind, found in verdicts.items()))
    print(f"{'stage':<8}{'p50 s':>8}{'p95 s':>8}{'count':>8}")
    for stage in STAGES:
        seconds = [s["seconds"] for task in tasks for s in task.result["stages"]
                   if s["name"] == stage and s["status"] != "not_run"]
        if seconds:
            print(f"{stage:<8}{percentile(seconds, 0.5):8.3f}{percentile(seconds, 0.95):8.3f}{len(seconds):8}")


def overhead(client, name, folder, cache):
    """Medians of one answer at a time, each built before: by the service, and by the command."""
    served, alone = [], []
    answer = folder / name
    answer.write_text(answers(name)["right"])
    command = [ASSAY, "--root", ROOT, "grade", answer, "-c", CHALLENGE, "--quick", "--stages", ",".join(STAGES), "--cache", cache,
               "--json"]
    for n in range(2 if SMOKE else 6):
        begin = time.monotonic()
        client.grade(CHALLENGE, files={name: answer.read_text()}, quick=True, stages=STAGES, seed=n)
        middle = time.monotonic()
        subprocess.run([*command, "--seed", str(n)], check=True, capture_output=True)
        served.append(middle - begin)
        alone.append(time.monotonic() - middle)
    served, alone = (statistics.median(times[1:]) for times in (served, alone))  # the first builds
    print(f"{name}: one right answer takes {served:.2f} s served, {alone:.2f} s by assay grade")


processes.adopt_orphans()
with tempfile.TemporaryDirectory(prefix="assay-serve-load-") as place:
    folder = pathlib.Path(place)
    server = subprocess.Popen([ASSAY, "--root", ROOT, "serve", "--state", folder / "state", "--port", "0", "--queue", str(COUNT),
                               "--cache", folder / "cache"], stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().split()[-1]
    client = assay_client.Client(address)
    print(f"assay serve, {client.health()['jobs']} jobs, {os.cpu_count()} cores")
    for name in ("submission.cpp", "submission.cu"):
        if name.endswith(".cu") and not NVCC:
            print("no nvcc: no answers in CUDA")
            continue
        load(client, server.pid, name)
        overhead(client, name, folder, folder / "cache")
    server.send_signal(signal.SIGTERM)
    ended = server.wait(timeout=120)
    left = processes.orphans()
    print(f"\nprocesses left: {len(left)} {left if left else ''}")
    sys.exit(0 if ended == 128 + signal.SIGTERM and not left else 1)
