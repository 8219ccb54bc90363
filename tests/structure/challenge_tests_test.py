"""A challenge without a test fails to configure, unless tests are not built. Usage: challenge_tests_test.py ROOT."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])


def configured(source, build, *options):
    done = subprocess.run(["cmake", "-S", source, "-B", build, "-G", "Ninja", *options], capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def not_needed(folder, names):
    """At the top level: what is large or made by a build."""
    large = {".git", ".cache", "results", "submissions"}
    return [n for n in names if pathlib.Path(folder) == ROOT and (n in large or n.startswith("build"))]


with tempfile.TemporaryDirectory(prefix="assay-configure-") as scratch:
    tree = pathlib.Path(scratch) / "tree"
    shutil.copytree(ROOT, tree, ignore=not_needed)
    lonely = tree / "challenges" / "lonely"
    (lonely / "worker").mkdir(parents=True)
    (lonely / "spec.json").write_text("{}")
    (lonely / "worker" / "adapter.cpp").write_text("")
    failed = []
    good, said = configured(tree, tree / "build", "-DBUILD_TESTING=ON")
    if good or "tests/challenges/lonely_test.cpp" not in said:
        failed.append(f"a challenge without a test configures, or the message does not name the test:\n{said}")
    good, said = configured(tree, tree / "build-without", "-DBUILD_TESTING=OFF", "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON")
    if not good:
        failed.append(f"without tests it must configure, and without GoogleTest:\n{said}")
print("\n".join(failed) or "a challenge needs a test; running needs none")
sys.exit(bool(failed))
