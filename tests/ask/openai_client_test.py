"""Checks the test server against the protocol by running the official client (npm: openai) on it.

Usage: openai_client_test.py. Installs into a temporary folder. Skipped (77) without npm or a registry.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import server as chat  # noqa: E402

KEY = "the-key-of-the-test"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


if shutil.which("npm") is None or shutil.which("node") is None:
    skip("npm is not installed")
with tempfile.TemporaryDirectory(prefix="assay-openai-") as folder:
    installed = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "openai"], cwd=folder,
                               capture_output=True, text=True)
    if installed.returncode != 0:
        skip(f"npm cannot install openai: {installed.stderr.strip()[-300:]}")
    # Next to its node_modules, where node looks for them.
    program = shutil.copy(HERE / "openai_client.mjs", folder)
    with chat.ChatServer(key=KEY) as server:
        sys.exit(subprocess.run(["node", program, server.url, KEY], cwd=folder, timeout=600).returncode)
