"""Every tier of isolation, in the surroundings that people have, against the attacks that it promises to stop.

Usage: attack_tiers_test.py ASSAY ROOT [--in SURROUNDINGS]... [arguments for assay attack]. Without arguments
the whole suite runs in each, which takes hours; with --fast, half an hour. Needs root. Surroundings that this
machine does not permit are reported and left out; if only one is left, the test is skipped (77).
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]
# Mounts the whole file system again and changes root into it, which makes namespaces harder to get.
CHROOT = ["unshare", "--mount", "--", "sh", "-c",
          'mount --make-rprivate / && mount --rbind / "$0" && exec chroot "$0" "$@"']
SURROUNDINGS = {
    "root, namespaces": ([], "namespaces"),
    "root, Landlock": ([], "landlock"),
    "ordinary user, namespaces": (NOBODY, "namespaces"),
    "ordinary user, Landlock": (NOBODY, "landlock"),
    "container": ([sys.executable, SUPPORT / "container.py", "--"], "landlock"),
    "chroot": (None, "auto"),
}


def run(assay, root, name, arguments):
    """The exit status of assay attack, and its last line."""
    prefix, tier = SURROUNDINGS[name]
    with tempfile.TemporaryDirectory(prefix="assay-tiers-") as folder:
        os.chmod(folder, 0o777)
        cache = pathlib.Path(folder) / "cache"
        if prefix is None:
            (pathlib.Path(folder) / "root").mkdir()
            prefix = [*CHROOT, pathlib.Path(folder) / "root"]
        command = [*prefix, assay, "--root", root, "attack", "--tier", tier, "--cache", cache, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    for line in lines:
        if "UNEXPECTED" in line:
            print(line)
    print(f"{name}: {lines[-1] if lines else done.stderr.strip()}", flush=True)
    return done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assay", type=pathlib.Path)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--in", dest="names", action="append", choices=SURROUNDINGS)
    options, arguments = parser.parse_known_args()
    if os.geteuid() != 0:
        print("skipped: needs root, to be others")
        return 77
    held = failed = 0
    for name in options.names or SURROUNDINGS:
        done = run(options.assay.resolve(), options.root.resolve(), name, arguments)
        # 2: this tier is not available here; 77: nor are these surroundings.
        if done.returncode in (2, 77) and "attacks caught" not in done.stdout:
            print(f"{name}: left out")
            continue
        held += done.returncode == 0
        failed += done.returncode != 0
    if failed:
        return 1
    return 0 if held > 1 or options.names else 77


sys.exit(main())
