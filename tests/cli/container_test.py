"""Drives the real program the way a container runs it by default: as root in a folder that is closed to others,
without namespaces. Skipped (77) if no such surroundings can be made, or if the kernel has no Landlock.

Usage: container_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
CONTAINER = [sys.executable, ROOT / "tests" / "support" / "container.py"]
CHALLENGE = "layer_norm_backward"
SYS_LANDLOCK_CREATE_RULESET, ONLY_THE_VERSION = 444, 1


class Container(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="assay-container-"))  # has mode 0700
        for folder in ("include", "challenges"):
            shutil.copytree(ROOT / folder, cls.home / folder)
        answer = pathlib.Path("submissions") / "textbook" / CHALLENGE
        shutil.copytree(ROOT / answer, cls.home / answer)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.home)

    def assay(self, *args, expect, surroundings=(), env=()):
        command = [*CONTAINER, *surroundings, "--cd", self.home, "--", ASSAY, *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "ASSAY_NVCC": "", **dict(env)})
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def built(self, cache):
        return list((self.home / cache).glob("*.so"))

    def test_doctor_is_content(self):
        done = self.assay("doctor", expect=0)
        self.assertIn("landlock+seccomp", done.stdout)
        self.assertNotIn("BAD", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^note namespaces +not usable: ")
        self.assertRegex(done.stdout, r"(?m)^ok +compiler in the sandbox +works")
        findings = json.loads(self.assay("doctor", "--json", expect=0).stdout)
        notes = {f["name"] for f in findings if f["note"]}
        self.assertIn("namespaces", notes)
        self.assertTrue(all(f["good"] for f in findings))

    def test_an_answer_is_graded(self):
        self.assay("run", "--quick", "--device", "cpu", expect=0)
        entry, = json.loads((self.home / "results" / "scoreboard.json").read_text())["entries"]
        self.assertIn("landlock+seccomp", json.dumps(entry))
        self.assertIn('"verdict": "OK"', json.dumps(entry))

    def test_without_isolation_it_refuses_before_anything_is_built(self):
        done = self.assay("run", "--cache", "refused", expect=2, surroundings=["--no-landlock"])
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("--unsafe", done.stderr)
        self.assertEqual(self.built("refused"), [])
        self.assertIn("BAD", self.assay("doctor", expect=1, surroundings=["--no-landlock"]).stdout)

    def test_a_gpu_has_a_filter_where_nothing_else_works(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            driver = shutil.copy(ASSAY.parent / "tests" / "libcuda_double.so", folder)
            # There is no nvcc: the GPU is found, but nothing is built.
            done = self.assay("gpu", "--unsafe", "--driver", driver, expect=2, surroundings=["--no-landlock"])
            self.assertIn("note: this kernel has no Landlock", done.stderr)
            self.assertIn("no CUDA Toolkit", done.stderr)
            done = self.assay("gpu", "--unsafe", "--driver", "libm.so.6", expect=2, surroundings=["--no-landlock"])
            self.assertIn("the driver runs in a sandbox (seccomp, as a user of its own)", done.stderr)

    def test_a_compiler_that_cannot_work_is_found_before_anything_is_built(self):
        compiler = self.home / "g++"
        compiler.write_text("#!/bin/sh\nexec /usr/bin/g++ \"$@\"\n")
        compiler.chmod(0o755)
        env = {"ASSAY_CXX": str(compiler)}  # in a home that the sandbox's user cannot enter
        done = self.assay("run", "--cache", "broken", expect=2, env=env)
        self.assertIn(str(compiler), done.stderr)
        self.assertEqual(self.built("broken"), [])
        self.assertIn("BAD", self.assay("doctor", "--cache", "broken", expect=1, env=env).stdout)


if __name__ == "__main__":
    if ctypes.CDLL(None).syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, ONLY_THE_VERSION) <= 0:
        print("skipped: no Landlock in this kernel")
        sys.exit(77)
    if subprocess.run([*CONTAINER, "--", "true"]).returncode == 77:
        sys.exit(77)
    unittest.main()
