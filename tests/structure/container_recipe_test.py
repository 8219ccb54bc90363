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
for script in re.findall(r"/src/(scripts/\S+)", recipe):
    if not (ROOT / script).exists():
        problems.append(f"there is no {script}")
if re.search(r"privileged|--cap-add|seccomp=unconfined", recipe):
    problems.append("asks for privileges")
ignored = {line.strip() for line in (ROOT / ".containerignore").read_text().splitlines()}
for secret in ("/.git/", "/build*/"):
    if secret not in ignored:
        problems.append(f".containerignore lets {secret} in")
print("\n".join(problems) or "the Containerfile is that of scripts/setup.sh")
sys.exit(bool(problems))
