"""A new Debian 12, as `docker run debian:12` gives it: the checkout below /root, scripts/run.sh --quick.

Usage: debian_test.py ROOT [arguments for assay run, such as --challenge layer_norm_backward]
ASSAY_DEBIAN names a folder with an already bootstrapped Debian, which is used and kept. Takes
about half an hour. Skipped (77) without root, debootstrap or a network.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

ROOT, ARGUMENTS = pathlib.Path(sys.argv[1]), sys.argv[2:]
CONTAINER = [sys.executable, str(ROOT / "tests" / "support" / "container.py")]
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def mirror():
    """The mirror from which this machine's apt gets Debian 12."""
    listing = subprocess.run(["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)"],
                             capture_output=True, text=True).stdout
    for line in listing.splitlines():
        release, component, uri = (line.split() + ["", "", ""])[:3]
        if release == "bookworm" and component == "main":
            return uri
    return "http://deb.debian.org/debian/"


def require_network(uri):
    try:
        urllib.request.urlopen(f"{uri.rstrip('/')}/dists/bookworm/Release", timeout=30).close()
    except (urllib.error.URLError, OSError) as error:
        skip(f"no Debian mirror: {uri}: {error}")


def bootstrap(folder):
    if os.geteuid() != 0:
        skip("needs root")
    if not shutil.which("debootstrap"):
        skip("needs debootstrap (apt-get install debootstrap)")
    uri = mirror()
    require_network(uri)
    subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder, uri], check=True,
                   stdout=subprocess.DEVNULL)


def check_out(folder):
    home = folder / "root"
    home.chmod(0o700)
    shutil.rmtree(home / "results", ignore_errors=True)
    if not (home / "assay").exists():
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, home / "assay"], check=True)
    shutil.copy("/etc/resolv.conf", folder / "etc" / "resolv.conf")


def run(folder):
    command = [*CONTAINER, "--root", str(folder), "--cd", "/root/assay", "--", "scripts/run.sh", "--quick", "--json",
               "--results", "/root/results", *ARGUMENTS]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    print(done.stderr)
    if done.returncode == 77:
        skip("this machine permits no container")
    assert done.returncode == 0, done.stdout
    return done


def check(done):
    assert "isolation landlock+seccomp" in done.stderr, done.stderr
    summary, _ = json.JSONDecoder().raw_decode(done.stdout, done.stdout.index('{\n "run"'))
    cells = [c for c in summary["cells"] if c["device"] == "cpu"]
    assert cells, done.stdout
    for cell in cells:
        assert cell["total"] is not None and cell["verdict"] not in ("JE", "CE", "LE"), cell
    print(f"{len(cells)} cells graded")


def main():
    kept = os.environ.get("ASSAY_DEBIAN")
    folder = pathlib.Path(kept or tempfile.mkdtemp(prefix="assay-debian-"))
    try:
        if not (folder / "etc" / "debian_version").exists():
            bootstrap(folder)
        check_out(folder)
        check(run(folder))
    finally:
        if not kept:
            shutil.rmtree(folder)


main()
