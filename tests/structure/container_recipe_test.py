"""The Containerfile installs what scripts/setup.sh does, and names only files that exist.

Usage: container_recipe_test.py ROOT. Uses only the standard library.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
recipe = (ROOT / "Containerfile").read_text()
setup = (ROOT / "scripts" / "setup.sh").read_text()
ONLY_TO_PACKAGE = {"dpkg-dev", "file"}

wanted = set(re.search(r"\npackages=\(([^)]*)\)", setup).group(1).split())
lines = re.sub(r"\\\n", " ", recipe)
first = re.search(r"apt-get install -y --no-install-recommends ([^\n]*)", lines).group(1)
installed = set(first.split())

problems = []
if not wanted or wanted | ONLY_TO_PACKAGE != installed:
    problems.append(f"lacks {sorted((wanted | ONLY_TO_PACKAGE) - installed)}, "
                    f"has for nothing {sorted(installed - wanted - ONLY_TO_PACKAGE)}")
with_tests = set(re.search(r"\ntest_packages=\(([^)]*)\)", setup).group(1).split())
if not ONLY_TO_PACKAGE <= with_tests:
    problems.append(f"the tests make a package, and lack {sorted(ONLY_TO_PACKAGE - with_tests)}")
for script in re.findall(r"/src/(scripts/\S+)", recipe):
    if not (ROOT / script).exists():
        problems.append(f"there is no {script}")
if re.search(r"privileged|--cap-add|seccomp=unconfined", recipe):
    problems.append("asks for privileges")
ignored = {line.strip() for line in (ROOT / ".dockerignore").read_text().splitlines()}
for secret in ("/.git/", "/build*/"):
    if secret not in ignored:
        problems.append(f".dockerignore lets {secret} in")
if (ROOT / ".containerignore").exists():
    problems.append("podman would read .containerignore alone, and docker .dockerignore")
print("\n".join(problems) or "the Containerfile is that of scripts/setup.sh")
sys.exit(bool(problems))
