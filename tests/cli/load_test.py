"""Many answers in one run: what a cell costs beyond its build and its cases, and whether memory grows.

All answers are tiny and alike, so almost nothing but the harness is measured. The cost of a cell is
printed; with --strict it must also be less than 100 ms, which only an idle machine can promise.

Usage: load_test.py ASSAY ROOT [MODELS] [--strict]. Uses only the standard library.
"""
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ASSAY, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
STRICT = "--strict" in sys.argv
NUMBERS = [int(word) for word in sys.argv[3:] if word.isdigit()]
MODELS = NUMBERS[0] if NUMBERS else 200
sys.path.insert(0, str(ROOT / "tests" / "support"))
import processes  # noqa: E402
import tiny_answers  # noqa: E402

MOST_BYTES, MOST_GROWTH, MOST_SECONDS = 1 << 30, 64 << 20, 0.1
TENTHS = 10


def check(condition, message):
    if not condition:
        sys.exit(f"load_test: {message}")


class Load:
    """Watches one run: (cells done, seconds, bytes) whenever a cell finishes."""

    def __init__(self, folder, submissions, results):
        command = [ASSAY, "--root", ROOT, "run", "--submissions", submissions, "--results", results, "--quick",
                   "--device", "cpu", "--cache", folder / "cache"]
        self.samples, self.said, began = [], "", time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        summary = []
        reader = threading.Thread(target=lambda: summary.append(process.stdout.read()))
        reader.start()
        for line in process.stderr:
            self.said += line
            done = re.match(r"\[(\d+)/\d+\] \S+/", line)
            if done:
                self.samples.append((int(done[1]), time.monotonic() - began, processes.resident_bytes(process.pid)))
        check(process.wait() == 0, self.said)
        reader.join()
        self.seconds, self.cells = time.monotonic() - began, len(self.samples)

    def account(self):
        """Seconds that are not overhead: cases, references, poison and caches, worker starts."""
        words = self.said.replace("\n", " ")
        found = re.search(r"submissions ([\d.]+) s, references ([\d.]+) s, cold caches and poison ([\d.]+) s, "
                          r"starting (\d+) workers ([\d.]+) s", words)
        check(found, f"no account in\n{self.said}")
        names = ("cases", "references", "poison and cold caches", "workers")
        return dict(zip(names, (float(found[n]) for n in (1, 2, 3, 5))))

    def tenth(self, n):
        size = max(1, self.cells // TENTHS)
        return self.samples[n * size:(n + 1) * size] if n < TENTHS - 1 else self.samples[-size:]


def mib(count):
    return f"{count / (1 << 20):.0f} MiB"


def report(load):
    account = load.account()
    overhead = max(0.0, load.seconds - sum(account.values())) / load.cells
    first, last = (statistics.median(s[2] for s in load.tenth(n)) for n in (0, TENTHS - 1))
    peak = max(s[2] for s in load.samples)
    print(f"{load.cells} cells in {load.seconds:.1f} s, {1e3 * load.seconds / load.cells:.0f} ms each, of which")
    for name, seconds in account.items():
        print(f"  {1e3 * seconds / load.cells:7.1f} ms  {name}")
    print(f"  {1e3 * overhead:7.1f} ms  overhead: all else, builds looked up in the cache")
    print(f"memory: {mib(first)} in the first tenth, {mib(last)} in the last, {mib(peak)} at most", flush=True)
    return overhead, first, last, peak


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-load-"))
    try:
        challenges = tiny_answers.challenges_of(ROOT)
        # First run one model, which builds everything that is shared.
        tiny_answers.submit(ROOT, folder / "warm", ["model"], challenges, same=True)
        Load(folder, folder / "warm", folder / "warm-results")
        tiny_answers.submit(ROOT, folder / "submissions", [f"model-{n:03}" for n in range(MODELS)], challenges, same=True)
        load = Load(folder, folder / "submissions", folder / "results")
        check(load.cells == MODELS * len(challenges), f"{load.cells} cells were finished")
        overhead, first, last, peak = report(load)
        check(peak < MOST_BYTES, f"the harness takes {mib(peak)}")
        check(last - first < MOST_GROWTH, f"memory grows from {mib(first)} to {mib(last)}")
        check(not STRICT or overhead < MOST_SECONDS, f"a cell costs {1e3 * overhead:.0f} ms")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
