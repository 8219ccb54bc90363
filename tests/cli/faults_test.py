"""The system fails under the real program, which says what failed, why and what to do, and loses nothing.

A preloaded library injects the faults (tests/support/faulty_system.c), so that neither root nor mounts are
needed. Faults that it cannot inject are tested in a mount namespace, and skipped where there is none.

Usage: faults_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import ctypes
import datetime
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "tests" / "support"))
import processes  # noqa: E402
import tiny_answers  # noqa: E402

CHALLENGES = ["fused_softmax_topk", "layer_norm_backward"]
MODELS = ["alice", "bob"]
CELLS = len(CHALLENGES) * len(MODELS)
PATIENCE = 300  # seconds
CLONE_NEWNS, CLONE_NEWUSER, MS_REC, MS_PRIVATE = 0x00020000, 0x10000000, 1 << 14, 1 << 18
LIBC = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags=0, options=None):
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    if LIBC.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]) != 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")


def own_mounts():
    """Runs between fork and exec: private mounts. As root only, without a user namespace: a sandbox inside one
    would behave differently."""
    if LIBC.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount(None, "/", None, MS_REC | MS_PRIVATE)


def why_no_mounts():
    if os.geteuid() != 0:
        return "needs root to mount"
    child = os.fork()
    if child == 0:
        try:
            own_mounts()
            os._exit(0)
        except OSError:
            os._exit(1)
    return "" if os.waitpid(child, 0)[1] == 0 else "this machine refuses mounts"


NO_MOUNTS = why_no_mounts()


def without_capabilities():
    """Runs between fork and exec: root may no longer raise its limits."""
    PR_CAPBSET_DROP, CAP_SYS_RESOURCE = 24, 24
    LIBC.prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="assay-faults-"))
        cls.submissions, cls.cache = cls.shared / "submissions", cls.shared / "cache"
        tiny_answers.submit(ROOT, cls.submissions, MODELS, CHALLENGES)
        tiny_answers.warm_cache(ASSAY, ROOT, CHALLENGES, cls.cache)
        cls.library = cls.shared / "faulty_system.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", cls.library,
                        ROOT / "tests" / "support" / "faulty_system.c", "-ldl"], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared, ignore_errors=True)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.shared))
        self.results, self.temporary = self.folder / "results", self.folder / "tmp"
        self.temporary.mkdir()

    def faults(self, **faults):
        variables = {f"FAULTS_{name.upper()}": str(value) for name, value in faults.items()}
        return {"LD_PRELOAD": str(self.library), **variables}

    def start(self, *args, env=(), root=("--root", ROOT), **options):
        process = subprocess.Popen(
            [ASSAY, *root, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(self.temporary), **dict(env)}, **options)
        self.addCleanup(process.kill)
        return process

    def start_run(self, *args, cache=None, **options):
        return self.start("run", "--submissions", self.submissions, "--quick", "-j", "1", "--results", self.results,
                          "--cache", cache or self.cache, *args, **options)

    def finish(self, process, expect):
        output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, expect, f"{output}\n{errors}")
        self.assertEqual(processes.orphans(), [])
        return output + errors

    def wait_for(self, process, text):
        for line in process.stderr:
            if text in line:
                return
        self.fail(f"ended without '{text}'")

    def rows(self):
        board, journal = self.results / "scoreboard.json", self.results / "scoreboard.journal"
        rows = json.loads(board.read_text())["entries"] if board.exists() else []
        lines = journal.read_text().splitlines() if journal.exists() else []
        return {(r["cell"]["model"], r["cell"]["challenge"]): r for r in rows + [json.loads(line) for line in lines]}

    def continue_with(self, said):
        """The command that the message names."""
        command = re.search(r"continue with\n  assay (.*)\n", said)
        self.assertTrue(command, said)
        return self.finish(self.start(*shlex.split(command[1]), root=()), 0)


class Disks(Case):
    def test_a_disk_that_fills_up_costs_nothing_that_was_measured(self):
        marker = self.folder / "full"
        process = self.start_run(env=self.faults(full=self.results, when=marker))
        self.wait_for(process, "[1/")
        marker.touch()
        said = self.finish(process, 2)
        self.assertRegex(said, rf"cannot write {re.escape(str(self.results))}\S+: No space left on device; make room")
        before = self.rows()
        self.assertGreaterEqual(len(before), 1)
        kept = re.search(r"the finished cell lies in (\S+): `assay (merge \S+)` takes it in", said)
        self.assertTrue(kept, said)
        rescued, = json.loads((pathlib.Path(kept[1]) / "scoreboard.json").read_text())["entries"]
        marker.unlink()
        self.finish(self.start(*shlex.split(kept[2]), "--results", self.results), 0)
        self.continue_with(said)
        self.assertEqual(len(self.rows()), CELLS)
        for key, row in before.items():
            self.assertEqual(self.rows()[key]["evidence"], row["evidence"], "it was measured again")
        self.assertIn((rescued["cell"]["model"], rescued["cell"]["challenge"]), self.rows())
        left = [p for p in self.results.rglob("*.tmp") if not p.name.startswith(".probe")]
        self.assertEqual(left, [])

    def test_where_nothing_can_be_written_at_all_the_loss_is_said(self):
        marker = self.folder / "full"
        process = self.start_run(env=self.faults(full=self.folder, when=marker))
        self.wait_for(process, "[1/")
        marker.touch()
        self.assertIn("the finished cell is lost", self.finish(process, 2))

    def test_a_read_only_folder_is_found_before_anything_is_measured(self):
        self.results.mkdir()
        said = self.finish(self.start_run(env=self.faults(read_only=self.results)), 2)
        self.assertRegex(said, r"cannot write in folder \S+/results\S*: Read-only file system; it is mounted read-only")
        self.assertEqual(said.count("\n"), 1, said)
        self.assertEqual(list(self.results.rglob("*.jsonl")), [])

    def test_a_folder_that_becomes_read_only(self):
        marker = self.folder / "now"
        process = self.start_run(env=self.faults(read_only=self.results, when=marker))
        self.wait_for(process, "[1/")
        marker.touch()
        said = self.finish(process, 2)
        self.assertIn("Read-only file system", said)
        before = self.rows()
        marker.unlink()
        self.continue_with(said)
        self.assertEqual(len(self.rows()), CELLS)
        for key, row in before.items():
            self.assertEqual(self.rows()[key]["evidence"], row["evidence"])

    def test_a_cache_without_room_is_a_fault_of_the_harness_not_of_the_answer(self):
        cache = self.folder / "cache"
        said = self.finish(self.start_run(cache=cache, env=self.faults(full=cache)), 2)
        self.assertIn("No space left on device; make room", said)
        self.assertEqual(self.rows(), {})

    @unittest.skipIf(NO_MOUNTS, NO_MOUNTS)
    def test_a_small_disk_fills_up(self):
        """A really full disk: a file system of a few pages."""
        self.results.mkdir()

        def on_a_small_disk():
            own_mounts()
            mount("none", self.results, "tmpfs", 0, "size=24k")

        process = self.start_run(preexec_fn=on_a_small_disk)
        said = self.finish(process, 2)
        self.assertIn("No space left on device; make room", said)
        self.assertIn("the finished cell lies in", said)

    @unittest.skipIf(NO_MOUNTS, NO_MOUNTS)
    def test_a_full_temporary_folder_is_passed_over(self):
        def fill():
            own_mounts()
            mount("none", self.temporary, "tmpfs", 0, "size=16k")
            try:
                (self.temporary / "filler").write_bytes(bytes(64 << 10))
            except OSError:
                pass

        self.finish(self.start_run("-m", "alice", preexec_fn=fill), 0)
        self.assertEqual(len(self.rows()), len(CHALLENGES))


class Time(Case):
    def test_a_clock_that_is_set_back_again_and_again(self):
        said = self.finish(self.start_run(env=self.faults(clock=3600)), 0)
        rows = self.rows()
        self.assertEqual(len(rows), CELLS, said)
        record, = self.results.glob("runs/*.jsonl")
        started = json.loads(record.read_text().splitlines()[0])["started_at"]
        for row in rows.values():
            self.assertGreaterEqual(row["cell"]["finished_at"], started)
            self.assertGreaterEqual(row["cell"]["seconds"], 0)
            evidence = json.loads((self.results / row["evidence"]["path"]).read_text())
            for case in evidence["cell"]["cases"]:
                self.assertGreaterEqual(case["seconds"], 0)
                self.assertNotIn("TLE", case["verdict"])
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.assertLess(started, now, "the fault was in force")

    def test_only_one_file_asks_for_the_time_of_day(self):
        asks = re.compile(r"system_clock|std::time\(|gettimeofday\(|CLOCK_REALTIME|\btime\(nullptr\)")
        found = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "src").rglob("*.cpp")) if asks.search(p.read_text())]
        self.assertEqual(found, ["src/util/clock.cpp"])


class Limits(Case):
    def limited(self, what, soft, hard):
        return lambda: resource.setrlimit(what, (soft, hard))

    def test_too_few_open_files(self):
        said = self.finish(self.start_run(preexec_fn=self.limited(resource.RLIMIT_NOFILE, 64, 64)), 2)
        self.assertRegex(said, r"may open 64 files here, and assay needs \d+: raise the limit, as with `ulimit -n \d+`")
        self.assertEqual(said.count("\n"), 1, said)

    def test_a_soft_limit_on_open_files_is_raised(self):
        process = self.start_run("-m", "alice", preexec_fn=self.limited(resource.RLIMIT_NOFILE, 32, 1024))
        self.finish(process, 0)
        self.assertEqual(len(self.rows()), len(CHALLENGES))

    def test_a_limit_on_memory_is_lifted_or_refused(self):
        limit = 900 << 20
        process = self.start_run(
            preexec_fn=lambda: (resource.setrlimit(resource.RLIMIT_AS, (limit, limit)), without_capabilities()))
        said = self.finish(process, 2)
        self.assertRegex(said, r"may have 900 MiB of memory here.*`ulimit -v unlimited`")
        self.assertEqual(said.count("\n"), 1, said)
        process = self.start_run("-m", "alice", preexec_fn=self.limited(resource.RLIMIT_AS, limit, resource.RLIM_INFINITY))
        self.finish(process, 0)

    def test_short_memory_ends_cells_that_are_nobody_s_zero(self):
        marker = self.folder / "short"
        process = self.start_run(env=self.faults(memory=1 << 16, when=marker))
        self.wait_for(process, "submissions, seed")
        marker.touch()
        output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(processes.orphans(), [])
        self.assertIn(process.returncode, (0, 2), output + errors)  # memory may be too short even to store that
        self.assertIn("out of memory", output + errors)
        for row in self.rows().values():
            if row["score"]["verdict"] == "JE":
                self.assertIsNone(row["score"]["total"])
        marker.unlink()
        options = ["--resume"] if process.returncode == 2 else []
        self.finish(self.start_run(*options), 0)
        rows = self.rows()
        self.assertEqual(len(rows), CELLS)
        self.assertNotIn("JE", {row["score"]["verdict"] for row in rows.values()})

    def test_a_process_that_cannot_be_started_for_a_moment_is_started_again_and_told(self):
        begun = self.results / "runs" / "*.jsonl"  # before any worker starts
        said = self.finish(self.start_run("--seed", "7", env=self.faults(fork=1, when=begun)), 0)
        refused = "cannot fork: Resource temporarily unavailable"
        self.assertRegex(said, rf"\w+/\w+: tried again after a fault of the harness: .*{refused}")
        rows = self.rows()
        self.assertEqual(len(rows), CELLS)
        self.assertNotIn("JE", {row["score"]["verdict"] for row in rows.values()})
        evidence = {cell: json.loads((self.results / row["evidence"]["path"]).read_text())
                    for cell, row in rows.items()}
        faults = {cell: e["cell"]["faults"] for cell, e in evidence.items() if "faults" in e["cell"]}
        self.assertTrue(faults)
        for (model, challenge), texts in faults.items():
            self.assertEqual(len(texts), 1)
            self.assertIn(refused, texts[0])
            shown = self.finish(self.start("show", model, challenge, "--results", self.results), 0)
            self.assertIn(f"tried again after faults of the harness:\n  {texts[0]}", shown)

    def test_a_sandbox_that_cannot_be_tried_for_a_moment_is_tried_again_and_no_weaker_one_taken(self):
        isolation = r"isolation \S+"
        usual = self.finish(self.start_run("-m", "alice"), 0)
        crowded = self.finish(self.start_run("-m", "alice", env=self.faults(fork=1)), 0)
        self.assertEqual(re.findall(isolation, crowded), re.findall(isolation, usual))

    @unittest.skipIf(NO_MOUNTS, NO_MOUNTS)
    def test_without_proc(self):
        def without_proc():
            own_mounts()
            mount("none", "/proc", "tmpfs")

        said = self.finish(self.start_run(preexec_fn=without_proc), 2)
        self.assertRegex(said, r"/proc is not there.*mount -t proc proc /proc")


class Submissions(Case):
    def test_they_may_vanish_or_change_while_they_are_graded(self):
        own = self.folder / "submissions"
        shutil.copytree(self.submissions, own)
        self.finish(self.start_run(), 0)
        expected = {key: row["cell"]["source_hash"] for key, row in self.rows().items()}
        self.results = self.folder / "again"
        process = self.start("run", "--submissions", own, "--quick", "-j", "1", "--results", self.results,
                             "--cache", self.folder / "cache")
        self.wait_for(process, "submissions, seed")
        for path in own.glob("bob/*/submission.cpp"):
            path.write_text("#error changed\n")
        shutil.rmtree(own / "alice")
        self.finish(process, 0)
        self.assertEqual({key: row["cell"]["source_hash"] for key, row in self.rows().items()}, expected)
        for row in self.rows().values():
            self.assertNotIn("CE", row["score"]["verdict"])

    def test_a_folder_that_vanished_before_it_was_read_is_named(self):
        gone = self.folder / "gone"
        said = self.finish(self.start("run", "--submissions", gone, "--results", self.results), 2)
        self.assertIn(str(gone), said)
        self.assertIn("create it", said)


if __name__ == "__main__":
    processes.adopt_orphans()
    unittest.main()
