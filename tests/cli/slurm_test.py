"""assay slurm, driven from outside, against small programs that stand in for Slurm's.

Usage: slurm_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.

The programs are this file under the names sbatch, squeue, sacct and scancel. They keep their jobs in the folder
$FAKE. $FAKE/lives.json sets the fate of each task: for each "JOB_SHARD" a list of states, one per call of squeue;
the last one stays. "done": the shard's results are there, and its mark; a state with "exit=N" leaves that mark.
Other files there make the programs fail: see below.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

FAKES = ("sbatch", "squeue", "sacct", "scancel")


def option(name):
    return next((a.split("=", 1)[1] for a in sys.argv if a.startswith(f"--{name}=")), "")


def numbers(array):
    for part in array.split("%")[0].split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def act(name, home):
    """One call of one of the programs."""
    with open(home / "calls", "a") as calls:
        calls.write(" ".join([name, *sys.argv[1:]]) + "\n")
    broken = home / f"{name}.fails"
    if broken.exists():
        sys.stderr.write(broken.read_text())
        return 1
    garbage = home / f"{name}.prints"
    if garbage.exists():
        print(garbage.read_text())
        return 0
    jobs = json.loads((home / "jobs.json").read_text()) if (home / "jobs.json").exists() else {}
    lives = json.loads((home / "lives.json").read_text())
    looks = json.loads((home / "looks.json").read_text()) if (home / "looks.json").exists() else {}

    def save():
        for file, value in (("jobs", jobs), ("looks", looks)):
            (home / f"{file}.new").write_text(json.dumps(value))
            os.replace(home / f"{file}.new", home / f"{file}.json")

    if name == "sbatch":
        refused = home / "refuses"
        if refused.exists() and refused.read_text() in " ".join(sys.argv):
            sys.stderr.write("sbatch: error: Batch job submission failed: Invalid account\n")
            return 1
        job = str(len(jobs) + 1)
        jobs[job] = {"name": option("job-name"), "shards": list(numbers(option("array"))), "script": sys.argv[-1]}
        save()
        if (home / "killed_after_sbatch").exists():
            (home / "killed_after_sbatch").unlink()
            os.kill(os.getppid(), signal.SIGKILL)
        print(job)
    elif name == "squeue" and option("name"):
        print("\n".join(j for j in jobs if jobs[j]["name"] == option("name")))
    elif name in ("squeue", "sacct"):
        for job in option("jobs").split(","):
            folder = pathlib.Path(jobs[job]["script"]).parent
            for shard in jobs[job]["shards"]:
                task = f"{job}_{shard}"
                life = lives.get(task, ["PENDING"])
                look = looks.get(task, 0)
                state, _, status = life[min(look, len(life) - 1)].partition(" exit=")
                if name == "squeue":
                    looks[task] = look + 1
                    if state == "done":
                        shutil.copytree(home / "measured" / str(shard), folder / "shards" / f"{shard:04}",
                                        dirs_exist_ok=True)
                        status = "0"
                    if status:
                        (folder / "marks" / f"{shard}.{job}.ended").write_text(status + "\n")
                forgotten = state.startswith("forgotten")
                state = {"done": "COMPLETED"}.get(state, state).replace("forgotten:", "")
                if name == "squeue" and not forgotten:
                    print(f"{job}|{shard}|{state}|node{job}")
                if name == "sacct" and state != "forgotten":
                    print(f"{task}|{state}|node{job}")
        save()
    return 0


if pathlib.Path(sys.argv[0]).name in FAKES:
    sys.exit(act(pathlib.Path(sys.argv[0]).name, pathlib.Path(os.environ["FAKE"])))

ASSAY, ROOT = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
MODELS = ("textbook", "tuned")
WHAT = ["--quick", "--device", "cpu", "-c", "layer_norm_backward", *(w for m in MODELS for w in ("-m", m))]
PATIENCE = 120  # seconds


class Fake(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """What the shards measure: rows of the shipped board, one per shard. These tests need to run no shard."""
        cls.shared = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        board = json.loads((ROOT / "results" / "scoreboard.json").read_text())
        for shard, model in enumerate(MODELS, 1):
            folder = cls.shared / "measured" / str(shard)
            rows = [r for r in board["entries"] if (r["cell"]["model"], r["cell"]["challenge"], r["cell"]["device"]) ==
                    (model, "layer_norm_backward", "cpu")]
            assert len(rows) == 1, model
            (folder / "runs").mkdir(parents=True)
            (folder / "scoreboard.json").write_text(json.dumps({**board, "entries": rows}, indent=1))

    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.home)
        self.bin, self.results = self.home / "bin", self.home / "results"
        self.bin.mkdir()
        for name in FAKES:
            (self.bin / name).write_text(f"#!/bin/sh\nexec {sys.executable} {self.bin}/run/$(basename $0) \"$@\"\n")
            (self.bin / name).chmod(0o755)
        (self.bin / "run").mkdir()
        for name in FAKES:
            (self.bin / "run" / name).symlink_to(pathlib.Path(__file__).resolve())
        (self.home / "measured").symlink_to(self.shared / "measured")
        self.live({})
        self.environment = {**os.environ, "FAKE": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin"}

    def live(self, lives):
        (self.home / "lives.json").write_text(json.dumps(lives))

    def put(self, name, text):
        (self.home / name).write_text(text)

    def command(self, *arguments, run=WHAT):
        return [ASSAY, "--root", ROOT, "slurm", "--array", "2", "--poll", "0.05", "--results", self.results, *arguments,
                "--", *run]

    def slurm(self, *arguments, status=0, run=WHAT):
        done = subprocess.run(self.command(*arguments, run=run), env=self.environment, cwd=self.home, text=True,
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def calls(self, name):
        path = self.home / "calls"
        return [c for c in path.read_text().splitlines() if c.startswith(name)] if path.exists() else []

    def merged(self):
        board = json.loads((self.results / "scoreboard.json").read_text())
        return sorted(row["cell"]["model"] for row in board["entries"])

    def array(self):
        folder, = (p for p in (self.results / "slurm").iterdir() if p.is_dir())
        return folder, json.loads((folder / "array.json").read_text())

    def wait_for(self, what):
        until = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)


class Follows(Fake):
    def test_to_the_end_and_merges(self):
        self.live({"1_1": ["PENDING", "RUNNING", "done"], "1_2": ["RUNNING", "done"]})
        done = self.slurm("--partition", "long", "--time", "60", "--sbatch=--mail-type=END")
        self.assertEqual(self.merged(), ["textbook", "tuned"])
        self.assertIn("2 results in 2 shards, 2 new on the board", done.stdout)
        call, = self.calls("sbatch")
        for word in ("--array=1-2", "--partition=long", "--time=60", "--mail-type=END", "--no-requeue"):
            self.assertIn(word, call)
        self.assertTrue(self.array()[1]["finished"])
        # In a pipe, progress is plain lines.
        self.assertNotIn("\r", done.stderr)
        self.assertIn("shard 1 done\n", done.stderr)

    def test_without_accounting(self):
        self.put("sacct.fails", "Slurm accounting storage is disabled\n")
        self.live({"1_1": ["done"], "1_2": ["RUNNING", "done"]})
        self.assertIn("Slurm accounting storage is disabled", self.slurm().stderr)
        self.assertEqual(len(self.calls("sacct")), 1)

    def test_accounting_knows_what_the_queue_forgot(self):
        self.live({"1_1": ["forgotten:TIMEOUT"], "1_2": ["done"], "2_1": ["done"]})
        self.assertIn("shard 1 failed on node1: TIMEOUT", self.slurm().stderr)

    def test_submits_again_what_its_node_took_along(self):
        self.live({"1_1": ["RUNNING", "NODE_FAIL"], "1_2": ["done"], "2_1": ["done"]})
        done = self.slurm()
        again = self.calls("sbatch")[1]
        self.assertIn("--array=1 ", again)
        self.assertIn("--exclude=node1", again)
        self.assertIn("submitted again: shard 1, which failed on node1 (NODE_FAIL)", done.stdout)
        self.assertEqual(self.merged(), ["textbook", "tuned"])

    def test_submits_again_what_ended_with_an_error(self):
        self.live({"1_1": ["FAILED exit=2"], "1_2": ["done"], "2_1": ["done"]})
        self.assertIn("exit status 2", self.slurm().stderr)

    def test_submits_again_what_left_no_mark(self):
        self.live({"1_1": ["RUNNING", "COMPLETED"], "1_2": ["done"], "2_1": ["done"]})
        self.assertIn("left no mark", self.slurm().stderr)

    def test_gives_up_and_says_why_and_goes_on_when_asked_again(self):
        self.live({"1_1": ["TIMEOUT"], "1_2": ["done"], "2_1": ["OUT_OF_MEMORY"]})
        done = self.slurm(status=2)
        self.assertIn("1 shard failed too often", done.stderr)
        self.assertIn("OUT_OF_MEMORY", done.stderr)
        self.assertIn("1.2.log", done.stderr)
        self.assertIn(f"`assay merge --results {self.results} {self.array()[0]}/shards/*/`", done.stderr)
        self.live({"3_1": ["done"]})
        self.slurm()
        self.assertEqual(len(self.calls("sbatch")), 3)
        self.assertEqual(self.merged(), ["textbook", "tuned"])

    def test_resubmissions_may_be_forbidden(self):
        self.live({"1_1": ["FAILED"], "1_2": ["done"]})
        self.slurm("--resubmit", "0", status=2)
        self.assertEqual(len(self.calls("sbatch")), 1)

    def test_garbage_is_asked_again_and_never_taken_for_an_end(self):
        self.put("squeue.prints", "slurmctld is having lunch")
        self.live({"1_1": ["done"], "1_2": ["done"]})
        running = subprocess.Popen(self.command(), env=self.environment, cwd=self.home, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.wait_for(lambda: len(self.calls("squeue")) > 5)
        (self.home / "squeue.prints").unlink()
        out, err = running.communicate(timeout=PATIENCE)
        self.assertEqual(running.returncode, 0, out + err)
        self.assertEqual(err.count("having lunch"), 1)
        self.assertEqual(len(self.calls("sbatch")), 1)


class Refuses(Fake):
    def test_without_slurm(self):
        self.environment["PATH"] = str(self.home)
        self.assertIn("cannot find sbatch on the PATH: run this where Slurm's commands are", self.slurm(status=2).stderr)

    def test_with_what_sbatch_said(self):
        self.put("refuses", "--account=nobody")
        self.assertIn("sbatch refused the job: sbatch: error: Batch job submission failed: Invalid account",
                      self.slurm("--account", "nobody", status=2).stderr)

    def test_what_sbatch_prints_instead_of_a_job(self):
        self.put("sbatch.prints", "Welcome to the cluster!")
        self.assertIn("no job id but 'Welcome to the cluster!", self.slurm(status=2).stderr)

    def test_options_that_run_does_not_have(self):
        self.assertIn("--qick", self.slurm(run=["--qick"], status=2).stderr)
        for own in ("--results", "--shard"):
            self.assertIn(f"{own} is not for a job array", self.slurm(run=[own, "1/2"], status=2).stderr)
        self.assertIn("--resume is not for a job array", self.slurm(run=["--resume"], status=2).stderr)

    def test_answers_that_are_not_there(self):
        self.assertIn("did you mean 'tuned'", self.slurm(run=["-m", "tunde"], status=2).stderr)
        self.assertEqual(self.calls("sbatch"), [])

    def test_costs_that_are_not_there(self):
        self.assertIn("there is no board", self.slurm("--costs", self.home / "nowhere", status=2).stderr)
        self.assertEqual(self.calls("sbatch"), [])

    def test_another_command_while_one_is_unfinished(self):
        self.live({"1_1": ["FAILED"], "1_2": ["done"]})
        self.slurm("--resubmit", "0", status=2)
        self.assertIn("is unfinished, of another command", self.slurm("--qos", "high", status=2).stderr)

    def test_a_second_follower(self):
        self.live({"1_1": ["RUNNING"], "1_2": ["RUNNING"]})
        first = subprocess.Popen(self.command(), env=self.environment, cwd=self.home, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(first.wait)
        self.addCleanup(first.kill)
        self.wait_for(lambda: self.calls("squeue"))
        self.assertIn("another `assay slurm` follows", self.slurm(status=2).stderr)


class Mixes(Fake):
    """Nodes of different kinds."""
    TIMED = [w for w in WHAT if w != "--quick"]

    def setUp(self):
        super().setUp()
        (self.home / "measured").unlink()
        shutil.copytree(self.shared / "measured", self.home / "measured")
        path = self.home / "measured" / "2" / "scoreboard.json"
        board = json.loads(path.read_text())
        for machine in board["machines"].values():
            machine["cpu"] = "Other CPU"
        path.write_text(json.dumps(board, indent=1))
        self.live({"1_1": ["done"], "1_2": ["done"]})

    def test_are_refused_when_they_time_and_taken_in_when_asked(self):
        err = self.slurm(run=self.TIMED, status=2).stderr
        self.assertRegex(err, r"Other CPU, \d+ cores: shards 0002")
        self.assertFalse((self.results / "scoreboard.json").exists())
        self.slurm("--mixed", run=self.TIMED)
        self.assertEqual(len(self.calls("sbatch")), 1)
        # Each row keeps its machine.
        board = json.loads((self.results / "scoreboard.json").read_text())
        cpu = {row["cell"]["model"]: board["machines"][row["machine"]]["cpu"] for row in board["entries"]}
        self.assertEqual(cpu["tuned"], "Other CPU")
        self.assertNotEqual(cpu["textbook"], "Other CPU")

    def test_do_not_matter_to_a_smoke_run(self):
        self.slurm()


class Stops(Fake):
    def begin(self, *arguments):
        self.live({"1_1": ["done"], "1_2": ["RUNNING"]})
        running = subprocess.Popen(self.command(*arguments), env=self.environment, cwd=self.home, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.wait_for(lambda: len(self.calls("squeue")) > 1)
        return running

    def test_killed_it_goes_on_with_the_same_jobs(self):
        running = self.begin()
        running.kill()
        running.communicate()
        self.live({"1_1": ["done"], "1_2": ["done"]})
        self.slurm()
        self.assertEqual(len(self.calls("sbatch")), 1)
        self.assertEqual(self.merged(), ["textbook", "tuned"])

    def test_killed_before_it_noted_the_job_it_finds_it(self):
        self.put("killed_after_sbatch", "")
        # The program starts through sh, which execs: its parent is assay.
        self.live({"1_1": ["done"], "1_2": ["done"]})
        self.slurm(status=-signal.SIGKILL)
        self.assertEqual(self.array()[1]["batches"][0]["job"], "")
        self.assertIn("found job 1", self.slurm().stderr)
        self.assertEqual(len(self.calls("sbatch")), 1)

    def test_interrupted_it_says_how_to_go_on(self):
        running = self.begin()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
        self.assertEqual(running.returncode, 130, out + err)
        self.assertIn("stopped by SIGINT; the jobs go on, and the same command goes on from here", err)
        self.assertEqual(self.calls("scancel"), [])

    def test_interrupted_it_may_cancel(self):
        running = self.begin("--cancel-on-interrupt")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
        self.assertEqual(running.returncode, 130, out + err)
        self.assertEqual(self.calls("scancel"), ["scancel 1"])
        # Shards whose jobs --cancel-on-interrupt cancelled are still wanted.
        self.live({"1_1": ["done"], "1_2": ["CANCELLED"], "2_2": ["done"]})
        self.slurm()
        self.assertEqual(self.merged(), ["textbook", "tuned"])


class Plans(Fake):
    def test_dry_run_prints_and_does_nothing(self):
        printed = self.slurm("--dry-run", "--nodes", "1").stdout
        self.assertIn("sbatch --parsable", printed)
        self.assertIn("--array=1-2%1", printed)
        self.assertIn("--shard \"$shard/2\"", printed)
        self.assertFalse(self.results.exists())
        self.assertEqual(self.calls(""), [])

    def test_what_is_timed_has_its_node_to_itself(self):
        timed = ["-m", "tuned", "--device", "cpu"]
        self.assertIn(" --exclusive ", self.slurm("--dry-run", run=timed).stdout)
        self.assertIn(" --exclusive ", self.slurm("--dry-run", run=["-m", "tuned"]).stdout)
        self.assertNotIn("--exclusive", self.slurm("--dry-run", run=[*timed, "--quick"]).stdout)
        self.assertNotIn("--exclusive", self.slurm("--dry-run", run=["-m", "tuned", "--device", "sim"]).stdout)


class Script(Fake):
    def submitted(self):
        """The array whose follower was killed, and the environment of one of its tasks."""
        self.live({"1_1": ["RUNNING"], "1_2": ["RUNNING"]})
        running = subprocess.Popen(self.command(), env=self.environment, cwd=self.home, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.wait_for(lambda: self.calls("squeue"))
        running.kill()
        running.wait()
        return *self.array(), {**self.environment, "SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_JOB_ID": "1",
                               "SLURMD_NODENAME": "here", "SLURM_CPUS_ON_NODE": "1", "TMPDIR": str(self.home)}

    def test_a_cache_in_which_others_may_write_is_left_alone(self):
        folder, _, task = self.submitted()
        # In assay's place: prints which cache it is given, and whose it is.
        self.put("stand-in", '#!/bin/sh\nwhile [ "$1" != --cache ]; do shift; done\nstat -c "%a %u %F %n" "$2"\n')
        (self.home / "stand-in").chmod(0o755)
        script = (folder / "job.sh").read_text()
        self.assertIn(f"{ASSAY} --root", script)
        self.put("job.sh", script.replace(f"{ASSAY} --root", f"{self.home}/stand-in --root"))
        cache = self.home / f"assay-cache-{os.getuid()}"

        def given():
            done = subprocess.run(["sh", self.home / "job.sh"], env=task, cwd=self.home, text=True, capture_output=True,
                                  timeout=PATIENCE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout

        mine = f"700 {os.getuid()} directory {cache}"
        self.assertEqual(given(), mine + "\n")
        self.assertEqual(given(), mine + "\n", "its own, of the task before")
        spoilt = {"writable by all": lambda: cache.chmod(0o777), "by the group": lambda: cache.chmod(0o770),
                  "a link": lambda: (cache.rename(self.home / "elsewhere"), cache.symlink_to(self.home / "elsewhere"))}
        if os.geteuid() == 0:
            spoilt = {"another user's": lambda: os.chown(cache, 54321, -1), **spoilt}
        for how, spoil in spoilt.items():
            with self.subTest(how):
                spoil()
                self.assertRegex(given(), rf"^{mine}\.\w+\n$")
                self.assertEqual([p.name for p in self.home.glob("assay-cache-*")], [cache.name], "it is removed")
                if not cache.is_symlink():
                    os.chown(cache, os.getuid(), -1)
                    cache.chmod(0o700)

    def test_the_job_script_measures_a_shard_and_goes_on(self):
        """For real: runs the script as a task would, again and again."""
        folder, array, task = self.submitted()
        for said in ("seed " + array["seed"], "the run in this folder is finished: nothing to measure"):
            done = subprocess.run(["sh", folder / "job.sh"], env=task, cwd=self.home, text=True, capture_output=True,
                                  timeout=PATIENCE * 5)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(said, done.stdout + done.stderr)
        self.assertEqual((folder / "marks" / "2.1.began").read_text(), "here\n")
        self.assertEqual((folder / "marks" / "2.1.ended").read_text(), "0\n")
        self.assertEqual([p.name for p in (folder / "marks").iterdir() if p.name.startswith(".")], [])
        rows = json.loads((folder / "shards" / "0002" / "scoreboard.json").read_text())["entries"]
        self.assertEqual(len(rows), 1)
        # Killed before its end was recorded, it continues and measures nothing twice.
        record, = (folder / "shards" / "0002" / "runs").iterdir()
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(lines[:-1]))
        evidence, = (p for p in (folder / "shards" / "0002" / "cells").rglob("*.json"))
        measured = evidence.stat().st_mtime_ns
        subprocess.run(["sh", folder / "job.sh"], env=task, cwd=self.home, check=True, capture_output=True)
        self.assertEqual(record.read_text().splitlines(keepends=True), lines)
        self.assertEqual(evidence.stat().st_mtime_ns, measured)
        self.assertEqual(len(list(record.parent.iterdir())), 1)
        # The only writer of a folder does not lock it.
        self.assertFalse((folder / "shards" / "0002" / ".lock").exists())


if __name__ == "__main__":
    unittest.main()
