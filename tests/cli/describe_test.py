"""The manual page and the completion for bash know every command and every option that --help shows. The
manual page also knows every key of the board and of the evidence.

Usage: describe_test.py ASSAY. Uses only the standard library, bash and, where it is installed, groff.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ASSAY = pathlib.Path(sys.argv.pop(1)).resolve()
SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "challenges" / "scoreboard.schema.json"
SUPERSEDED = {"scoreboard_1", "entry"}


def printed(*args):
    return subprocess.run([ASSAY, *args], capture_output=True, text=True, check=True, cwd="/").stdout


def commands():
    listed = printed("--help").split("\nSubcommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\w+)", listed, re.M)


def options(*command):
    """Every name of every option in a command's help."""
    lines = re.findall(r"^  (-[^ ]*)", printed(*command, "--help"), re.M)
    return [name for line in lines for name in line.split(",")]


def keys_in(schema):
    """Every key of the objects that a schema describes itself, without those that it refers to."""
    if isinstance(schema, list):
        return {key for part in schema for key in keys_in(part)}
    if not isinstance(schema, dict):
        return set()
    inner = {key for part in schema.values() for key in keys_in(part)}
    properties = schema.get("properties", {})
    return inner | set(properties if isinstance(properties, dict) else {})


def completions(*words):
    """The completions that bash offers for the last word."""
    script = f"""{printed("completion", "bash")}
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_assay
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script, "bash", "assay", *words], capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return done.stdout.split()


class Describe(unittest.TestCase):
    def test_help_is_understood(self):
        self.assertIn("run", commands())
        self.assertIn("--model", options("run"))
        self.assertIn("-m", options("run"))

    def test_every_command_and_option_is_in_the_manual(self):
        page = printed("man")
        for command in commands():
            self.assertIn(f".SS assay {command}", page)
            section = page.split(f".SS assay {command}")[1].split(".SS")[0]
            section = re.sub(r"\\f[BIR]", "", section).replace("\\-", "-")
            for option in options(command):
                self.assertRegex(section, rf"(?<![\w-]){option}(?![\w-])", command)

    def test_every_key_of_results_is_in_the_manual(self):
        keys = printed("man").split(".SH KEYS OF RESULTS")[1].replace("\\-", "-")
        sections = {part.split("\n")[0]: part for part in keys.split(".SS ")[1:]}
        definitions = json.loads(SCHEMA.read_text())["definitions"]
        self.assertIn("board_cell", sections)
        for name, schema in definitions.items():
            if name in SUPERSEDED:
                self.assertNotIn(name, sections)
                continue
            # What has no section of its own is described where it is used.
            text = sections.get(name, keys)
            for key in keys_in(schema):
                self.assertRegex(text, rf"\\fB([\w.\[\]]*\.)?{key}\\fR", name)

    def test_every_command_and_option_is_completed(self):
        self.assertLessEqual(set(commands()), set(completions("")))
        for command in commands():
            self.assertLessEqual(set(options(command)), set(completions(command, "")), command)

    def test_hidden_commands_stay_hidden(self):
        for hidden in ("man", "completion"):
            self.assertNotIn(hidden, commands())
            self.assertNotIn(hidden, completions(""))

    def test_values_are_completed(self):
        self.assertEqual(completions("run", "--device", "s"), ["sim"])
        self.assertEqual(completions("--root", "/anywhere", "selftest", "-c", "kv"), ["kv_cache"])
        self.assertEqual(completions("show", "kv"), ["kv_cache"])
        # With no completions, bash falls back to file names.
        self.assertEqual(completions("run", "--results", "--"), [])

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_accepts_the_manual(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-P-cbu", "-ww", "-rLL=110n"], input=printed("man"),
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        self.assertIn("\nCOMMANDS\n", done.stdout)
        self.assertIn("       --device auto|cpu|sim\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
