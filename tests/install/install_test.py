"""assay as installed: it works without its sources, and the Debian package holds what it must.

Usage: install_test.py BUILD ROOT. Uses only the standard library, cmake and dpkg-deb.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD, ROOT = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
CHALLENGE = "layer_norm_backward"


def run(*command, cwd, env=None, expect=0):
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600)
    if done.returncode != expect:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout + done.stderr


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="assay-install-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.prefix, cls.home, cls.cache = cls.folder / "usr", cls.folder / "home", cls.folder / "cache"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix, cwd=cls.folder)
        cls.program = cls.prefix / "bin" / "assay"
        cls.environment = {"PATH": os.environ["PATH"], "HOME": str(cls.folder / "no-home"), "XDG_CACHE_HOME": str(cls.cache)}

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="assay-installed-")
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)

    def assay(self, *args, **more):
        return run(self.program, *args, cwd=self.work, env=more.pop("env", self.environment), **more)

    def test_the_program_knows_nothing_of_its_sources(self):
        self.assertNotIn(str(ROOT).encode(), self.program.read_bytes())

    def test_no_folder_is_empty(self):
        self.assertEqual([folder for folder, folders, files in os.walk(self.prefix) if not folders and not files], [])

    def test_it_lists_its_challenges_in_an_empty_folder(self):
        listed = self.assay("list", "challenges")
        for spec in ROOT.glob("challenges/*/spec.json"):
            self.assertIn(spec.parent.name, listed)
        self.assertEqual(list(self.work.iterdir()), [])

    def test_it_runs_and_reports_in_the_users_folders(self):
        answer = self.work / "submissions" / "textbook" / CHALLENGE
        answer.mkdir(parents=True)
        source = ROOT / "submissions" / "textbook" / CHALLENGE / "submission.cpp"
        (answer / "submission.cpp").write_bytes(source.read_bytes())
        self.assay("run", "--quick", "--seed", "1")
        board = json.loads((self.work / "results" / "scoreboard.json").read_text())
        self.assertEqual([e["score"]["verdict"] for e in board["entries"]], ["OK"])
        self.assay("report")
        self.assertIn("textbook", (self.work / "results" / "RANKINGS.md").read_text())
        self.assay("report", "--check")
        self.assertTrue(any(self.cache.glob("assay/**/*.so")))
        self.assertEqual(sorted(p.name for p in self.work.iterdir()), ["analysis", "results", "submissions"])

    def test_without_XDG_CACHE_HOME_the_cache_is_in_the_home(self):
        environment = {**self.environment, "HOME": str(self.home)}
        del environment["XDG_CACHE_HOME"]
        self.assay("doctor", env=environment)
        self.assertTrue((self.home / ".cache" / "assay").is_dir())

    def test_what_is_trusted_is_not_installed_as_source(self):
        shared = self.prefix / "share" / "assay"
        names = {"/".join(p.relative_to(shared).parts[2:]) for p in shared.glob("challenges/*/**/*") if p.is_file()}
        self.assertLessEqual({"spec.json", "prompt.md", "abi.h", "baselines/naive.cpp", "baselines/naive.cu",
                              "baselines/par.cpp", "worker/call.h", "worker/witness.cpp"}, names)
        self.assertFalse([n for n in names if n.startswith("harness/") or n == "worker/adapter.cpp"])
        self.assertTrue((shared / "include" / "assay" / "abi.h").exists())

    def test_par_kernels_are_where_answers_in_CUDA_are_graded_by_them(self):
        installed = {p.name for p in (self.prefix / "share" / "assay" / "kernels").glob("*.cu")}
        self.assertEqual(installed, {p.name for p in (ROOT / "kernels").glob("*.cu")})
        self.assertIn(f"{CHALLENGE}.cu", installed)

    def test_the_package(self):
        run("cpack", "-G", "DEB", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none", "-B", self.folder / "packages", cwd=BUILD)
        package, = (self.folder / "packages").glob("*.deb")
        content = run("dpkg-deb", "-c", package, cwd=self.folder)
        for path in ("bin/assay", "share/man/man1/assay.1", "share/bash-completion/completions/assay",
                     "share/doc/assay/copyright", f"share/assay/challenges/{CHALLENGE}/spec.json",
                     "share/assay/include/assay/abi.h"):
            self.assertIn(f"./usr/{path}", content)
        self.assertNotIn("reference.cpp", content)
        fields = run("dpkg-deb", "-I", package, cwd=self.folder)
        self.assertRegex(fields, r"Package: assay\n")
        for needed in ("g++", "libseccomp2", "libc6", "libfmt"):
            self.assertRegex(fields, rf"Depends: .*\b{needed.replace('+', '[+]')}")

        # The image of a task has all that the package needs: its tests may have no network.
        self.assay("export", "harbor", "-c", CHALLENGE, "--into", self.work / "tasks", "--package", package)
        image = (self.work / "tasks" / CHALLENGE / "environment" / "Dockerfile").read_text().split()
        come_with = {"libc6", "libgcc-s1", "libstdc++6"}  # g++
        depends = re.search("Depends: (.*)", fields).group(1)
        for needed in {entry.split()[0] for entry in depends.split(", ")} - come_with:
            self.assertIn(needed, image)


if __name__ == "__main__":
    unittest.main()
