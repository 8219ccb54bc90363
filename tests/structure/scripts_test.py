"""The scripts, copied beside stand-ins for what they call.

Usage: scripts_test.py ROOT [unittest arguments]. Uses only the standard library and bash.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-scripts-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.tree, self.bin, self.said = self.folder / "tree", self.folder / "bin", self.folder / "said"
        self.bin.mkdir()

    def copy(self, *names):
        for name in names:
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.tree / name)

    def stand_in(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def calls(self):
        return self.said.read_text().splitlines() if self.said.exists() else []

    def script(self, *command, status=0):
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "SAID": str(self.said),
                       "HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache")}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done


class Run(Case):
    def setUp(self):
        super().setUp()
        self.copy("scripts/run.sh")
        self.stand_in(self.tree / "scripts" / "setup.sh", 'echo "setup $*" >>"$SAID"')
        self.stand_in(self.tree / "build" / "assay", 'echo "$*" >>"$SAID"')

    def test_runs_and_reports(self):
        self.script("tree/scripts/run.sh", "--quick", "--results", "out")
        # assay_described is what `cmake --install` needs beside assay.
        self.assertEqual(self.calls(), ["setup assay assay_described", f"--root {self.tree} run --quick --results out",
                                        f"--root {self.tree} report --results out"])

    def test_help_reports_nothing(self):
        for option in ("-h", "--help"):
            self.said.unlink(missing_ok=True)
            self.script("tree/scripts/run.sh", option)
            self.assertEqual(self.calls(), [f"--root {self.tree} run --help"])


class GpuCheck(Case):
    GPU = {"name": "NVIDIA Some GPU", "driver": "13.0", "multiprocessors": 1, "memory_bytes": 2**30, "ecc": True,
           "copy_bytes_per_s": 1e12}

    def test_what_was_measured_outlives_a_model_and_a_peer_that_fail(self):
        self.copy("scripts/gpu-check.sh", "benchmarks/gpu_table.py")
        self.stand_in(self.tree / "scripts" / "setup.sh", "exit 0")
        (self.tree / "benchmarks" / "gpu_peers.py").write_text("raise SystemExit(1)\n")
        self.stand_in(self.bin / "python3", f"""[ "$2" != 'import torch' ] || exit 0\nexec {sys.executable} "$@" """)
        found = json.dumps({"gpu": self.GPU, "seed": 1, "challenges": []})
        self.stand_in(self.tree / "build" / "assay", f"""
case "$*" in
  *--modelled*) exit 1 ;;
  gpu*) echo '{found}' >"$3" ;;
  run*) mkdir -p "$5" && touch "$5/scoreboard.json" ;;
esac""")
        self.script("tree/scripts/gpu-check.sh", "--results", "out", status=1)
        out = self.folder / "out"  # where it was called, not in the tree
        self.assertTrue((out / "scoreboard.json").exists())
        measured, = (out / "benchmarks").glob("gpu_some_gpu_*.json")
        self.assertEqual(list(json.loads(measured.read_text())), ["gpu"])
        self.assertIn("# Kernels on NVIDIA Some GPU", measured.with_suffix(".md").read_text())


class TestSlurm(Case):
    def test_becomes_root_with_what_it_was_told(self):
        self.copy("scripts/test-slurm.sh")
        self.stand_in(self.folder / "mine", "exit 0")
        self.stand_in(self.bin / "id", "echo 1000")
        self.stand_in(self.bin / "sudo", 'echo "$*" >>"$SAID"')
        self.script("tree/scripts/test-slurm.sh", "mine")
        self.assertEqual(self.calls()[1:], [f"-n --preserve-env=PATH,ASSAY_INSTALL_SLURM "
                                            f"{self.tree}/scripts/test-slurm.sh {self.folder}/mine"])


class Setup(Case):
    def packages(self, installed, known):
        """What --checks installs as a user, where the package clang depends on `installed` and apt prints `known`."""
        self.said.unlink(missing_ok=True)
        self.stand_in(self.bin / "dpkg-query", f"""case "$*" in *Depends*) echo '{installed}' ;; esac""")
        self.stand_in(self.bin / "apt-cache", f"printf '{known}'")
        self.script("tree/scripts/setup.sh", "--checks")
        update, install = self.calls()
        self.assertIn("update", update)
        self.assertTrue(install.startswith("noninteractive install "), install)
        return install.split()

    def test_installs_as_a_user_what_the_distribution_names(self):
        self.copy("scripts/setup.sh")
        self.stand_in(self.bin / "id", "echo 1000")
        # As sudo does, it drops the environment.
        self.stand_in(self.bin / "sudo", '[ "$1" != -n ] || exit 0\nexec env -u DEBIAN_FRONTEND "$@"')
        self.stand_in(self.bin / "apt-get", 'echo "${DEBIAN_FRONTEND-} $*" >>"$SAID"')
        for program in ("cmake", "ninja"):
            self.stand_in(self.bin / program, "exit 0")
        for installed, known, wanted in (("clang-14 (>= 14~)", "", "libclang-rt-14-dev"),
                                         ("", "clang\\n  Depends: clang-19\\n", "libclang-rt-19-dev"),
                                         ("", "", "libclang-rt-dev")):
            with self.subTest(wanted):
                packages = self.packages(installed, known)
                self.assertEqual([p for p in packages if p.startswith("libclang-rt")], [wanted])
                self.assertIn("file", packages)


class ContinuousIntegration(Case):
    def test_a_warning_ends_it_in_a_second_run_too(self):
        for form in ("-Wc++20-extensions", "-Wformat=", "-Wunused-variable"):
            self.copy(".ci/run")
            # In ninja's place: what its log names is not compiled again.
            self.stand_in(self.tree / "scripts" / "setup.sh", f"""
[ -e build/.ninja_log ] || echo 'a.cpp:1:2: warning: something [{form}]'
mkdir -p build && touch build/.ninja_log""")
            for _ in range(2):
                with self.subTest(form):
                    self.assertIn("the build warns", self.script("tree/.ci/run", status=1).stderr)


if __name__ == "__main__":
    unittest.main()
