"""The documents tell the truth: their commands run, their links lead somewhere, their excerpts are real.

Every line of every fenced `sh` block has a row in COMMANDS that says how it is run here: as it stands,
or as something cheaper in its place. A line without a row fails, and so does a row without a line.

Usage: docs_test.py ASSAY ROOT BUILD [--slow] [unittest arguments]. With --slow only the slow rows are run.
Uses only the standard library.
"""
import collections
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT, BUILD = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(3))
SLOW = "--slow" in sys.argv
if SLOW:
    sys.argv.remove("--slow")
sys.path.insert(0, str(ROOT / "tests" / "support"))
import shipped_board  # noqa: E402: from there
from open_copies import open_copies  # noqa: E402
DOCUMENTS = [p for p in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), ROOT / "CONTRIBUTING.md"] if p.exists()]
README_BYTES, COLUMNS = 10_000, 100

# How a row is run: `command` in a copy of the tree ("" means as documented), with one of these exit statuses.
Run = collections.namedtuple("Run", "command slow needs status", defaults=("", False, "", (0,)))
# A file that the build can make; it is not made again here.
Target = collections.namedtuple("Target", "name")
# Too long for a test here; another script is known to run it.
CalledBy = collections.namedtuple("CalledBy", "script")

# Runs in the source tree, with its build: the script installs, builds, runs and reports.
DOUBLES = "--driver $DOUBLES/libcuda_double.so --management $DOUBLES/libnvidia-ml-double.so "
ON_DOUBLE = f"build/assay gpu {DOUBLES}"
# Equal commands run once, so what two rows show may be one command.
RUN_ON_DOUBLE = (
    ON_DOUBLE.replace(" gpu ", " run --device cuda --gpus 0,1 ", 1) + "-m tuned -c layer_norm_backward --quick --results "
    "$TMP/cuda >$TMP/cuda.log 2>&1 && grep 'tuned  layer_norm_backward (cuda)' $TMP/cuda.log && "
    "grep 'on Simulated H200 at 0000:5e:00.0' $TMP/cuda.log")
GPU_TO_JSON = (ON_DOUBLE + "-c layer_norm_backward --model tuned --no-time --case basic --json gpu.json && "
               "python3 -m json.tool gpu.json")
SHARDS = ("ssh() { shift; \"$@\" --costs results -m textbook -m tuned -c layer_norm_backward --device cpu --quick; }; "
          "ln -sfn . assay; for i in 1 2; do ssh n$i assay/build/assay run --shard $i/2 --seed 7 "
          "--results $TMP/parts/n$i; done && build/assay merge --results $TMP/merged $TMP/parts/*/")
RUN_SCRIPT = "cd $ROOT && scripts/run.sh --quick -m textbook -c layer_norm_backward --device cpu --results $TMP/run"
ONE_EXAMPLE = "build/assay selftest --challenge layer_norm_backward --example wrong_eps_outside_root"

# Two blocks, one of which defines the required functions.
ANSWER = ("{ printf '```sh\\nmake\\n```\\n```cpp\\n'; cat submissions/textbook/kv_cache/submission.cpp; "
          "printf '```\\n'; } >answer.md && ")

def asked(arguments):
    """`assay ask` with the server in tests/ask/, for one cheap task."""
    return Run(f"python3 tests/ask/server.py build/assay ask --url {{url}} --model tiny --submissions $TMP/asked "
               f"-c layer_norm_backward {arguments}")


def judged(arguments):
    """`assay judge` with that server, on the shipped answers to one task."""
    return Run(f"python3 tests/ask/server.py build/assay judge --url {{url}} --model judge -c layer_norm_backward "
               f"{arguments}")


def solved(agent, arguments):
    """The documented command line for one task, with an agent of that name that only writes an answer."""
    return Run(f"mkdir -p $TMP/bin && printf '#!/bin/sh\\necho \"// $*\" >>submission.cpp\\n' >$TMP/bin/{agent} && "
               f"chmod +x $TMP/bin/{agent} && PATH=$TMP/bin:$PATH build/assay solve --as {agent} "
               f"--submissions $TMP/solved -c layer_norm_backward {arguments} && "
               f"grep '^// -' $TMP/solved/{agent}/layer_norm_backward/1/submission.cpp || "
               f"grep '^// exec' $TMP/solved/{agent}/layer_norm_backward/1/submission.cpp")


def served(command, needs=""):
    """Runs a service that the command finds at $URL."""
    return Run("rm -f $TMP/serving; build/assay serve --state $TMP/served --port 0 >$TMP/serving & server=$!; "
               "until URL=$(grep -o 'http://[^ ]*' $TMP/serving); do kill -0 $server || exit 1; sleep 0.05; done; " + command +
               "; status=$?; kill $server; wait $server; [ $? = 143 ] && exit $status", needs=needs)


COMMANDS = {
    "CONTRIBUTING.md": {
        "scripts/test.sh": CalledBy(".ci/run"),
        "scripts/test.sh --browser": CalledBy(".ci/run"),
        "scripts/check.sh": Run("bash -n scripts/check.sh"),
        "scripts/check.sh --all": Run("bash -n scripts/check.sh"),
        "scripts/fuzz.sh 120": Run("scripts/fuzz.sh --list | grep ptx_parser"),
        ".ci/run": Run("bash -n $ROOT/.ci/run"),
        "cmake --preset dev": Run("cd $ROOT && cmake --list-presets | grep '\"dev\"'"),
        "cmake --build --preset dev --target grade_test": Target("grade_test"),
        "ctest --preset dev -R Grade": Run("cd $ROOT && ctest --list-presets | grep '\"dev\"'"),
    },
    "README.md": {
        "scripts/run.sh": Run(RUN_SCRIPT, slow=True),
        "scripts/test.sh": CalledBy(".ci/run"),
        "scripts/run.sh --model textbook --quick": Run(RUN_SCRIPT, slow=True),
        "build/assay show flawed kv_cache": Run(),
        "build/assay ask --url http://localhost:8000/v1 --model my-model --challenge kv_cache": asked(""),
        "build/assay run --model my-model": Run(RUN_SCRIPT, slow=True),
        "build/assay prompt kv_cache --language cuda > task.md": Run(),
        "build/assay deploy my-model --challenge kv_cache": Run(
            "build/assay deploy my-model --challenge kv_cache --into $TMP/tasks"),
        "build/assay add my-model kv_cache answer.md": Run(
            ANSWER + "build/assay add my-model kv_cache answer.md --submissions $TMP/added"),
        "build/assay check submissions/textbook/kv_cache --device cpu": Run(),
    },
    "docs/adding-a-challenge.md": {
        "cmake -S . -B build -G Ninja && ninja -C build assay": Target("assay"),
        "build/assay list challenges": Run(),
        "build/assay prompt layer_norm_backward": Run(),
        "build/assay selftest --challenge layer_norm_backward": Run(ONE_EXAMPLE),
        "build/assay selftest --challenge layer_norm_backward --every-case": Run(ONE_EXAMPLE + " --every-case"),
        "build/assay selftest --challenge layer_norm_backward --mutants 25": Run(
            "build/assay selftest --challenge layer_norm_backward --mutants 2"),
        "build/assay check submissions/textbook/layer_norm_backward": Run(
            "build/assay check submissions/textbook/layer_norm_backward --device cpu"),
        "build/assay fuzz layer_norm_backward --seconds 60": Run(
            "build/assay fuzz layer_norm_backward --seconds 2 --device cpu"),
        "build/assay run --model textbook --challenge layer_norm_backward --quick --results /tmp/board": Run(
            "build/assay run -m textbook -c layer_norm_backward --device cpu --quick --results $TMP/board"),
    },
    "docs/comparing.md": {
        "build/assay compare tuned textbook": Run(),
        "build/assay compare tuned textbook flawed --device cpu": Run(),
        "build/assay compare tuned textbook --solved 'score>=80' -k 1,4 -p 0.5,1": Run(),
        "build/assay judge --url http://localhost:8000/v1 --model my-judge --dry-run": Run(),
        "build/assay judge --url http://localhost:8000/v1 --model my-judge -m textbook -c kv_cache": judged(
            "-m textbook --as my-judge && build/assay show textbook layer_norm_backward --device cpu "
            "| grep 'opinion of my-judge'"),
        "build/assay judge --url http://localhost:8000/v1 --model my-judge --as j3 --samples 3": judged(
            "--as j3 --samples 3"),
        "build/assay diff HEAD": Run("build/assay diff $ROOT/results results"),
        "build/assay report": Run(
            "build/assay report --results results --analysis $TMP/analysis --rankings $TMP/RANKINGS.md"),
        "build/assay diff HEAD --least 0.5 --json": Run(
            "build/assay diff $ROOT/results results --least 0.5 --json | python3 -m json.tool"),
        "build/assay import results/published/llm_programming_tests.json --dry-run": Run(),
        "build/assay export csv --table cells -o cells.csv": Run(
            "build/assay export csv --table cells -o $TMP/cells.csv"),
        "build/assay export jsonl --table timings --model tuned": Run(),
        "build/assay export harbor --into tasks --package assay_0.1.0_amd64.deb": Run(
            "touch $TMP/assay.deb && build/assay export harbor --into $TMP/harbor --package $TMP/assay.deb"),
    },
    "docs/faults.md": {
        "scripts/fuzz.sh 600": Run("scripts/fuzz.sh --list | grep text"),
        "scripts/fuzz.sh 600 board evidence": Run("scripts/fuzz.sh --list | grep evidence"),
        "scripts/fuzz.sh --list": Run(),
    },
    "docs/file-formats.md": {
        "build/assay list --json": Run("build/assay list --json | python3 -m json.tool"),
        "build/assay doctor --json": Run(status=(0, 1)),
        # The shipped board, and shipped parts of it.
        "build/assay report --check": Run("build/assay --root $ROOT report --check"),
        "build/assay add my-model kv_cache answer.md": Run(
            ANSWER + "build/assay add my-model kv_cache answer.md --submissions $TMP/added"),
        "build/assay add my-model kv_cache answer.md --block 2 --dry-run": Run(
            ANSWER + "build/assay add my-model kv_cache answer.md --block 2 --dry-run"),
        "build/assay add my-agent kv_cache /tmp/tasks/my-agent/kv_cache": Run(
            "build/assay deploy my-agent --challenge kv_cache --into $TMP/worked && "
            "build/assay add my-agent kv_cache $TMP/worked/my-agent/kv_cache --submissions $TMP/added"),
        "build/assay check submissions/textbook/layer_norm_backward --device cpu --json": Run(
            "build/assay check submissions/textbook/layer_norm_backward --device cpu --json | python3 -m json.tool"),
        "build/assay grade submissions/textbook/layer_norm_backward --device cpu --seed 7 --json": Run(
            "build/assay grade submissions/textbook/layer_norm_backward --device cpu --seed 7 --quick --json "
            "| python3 -m json.tool"),
        "build/assay grade answer.cu -c kv_cache --stages build,core,all,findings,time --json": Run(
            "build/assay grade submissions/textbook/layer_norm_backward/submission.cpp --json --stages build,core "
            "| python3 -m json.tool"),
    },
    # There may be no free GPU here, so a driver that simulates one is used.
    "docs/gpu.md": {
        "build/assay run --device cuda": Run(RUN_ON_DOUBLE, needs="nvcc"),
        "build/assay run --device cuda --gpus 0,1": Run(RUN_ON_DOUBLE, needs="nvcc"),
        "build/assay gpu --gpus 1 -c layer_norm_backward": Run(
            ON_DOUBLE + "--gpus 1 -c layer_norm_backward --no-time --case basic", needs="nvcc"),
        "build/assay show tuned layer_norm_backward --device cuda": Run(),
        "build/assay grade answer.cu -c kv_cache --device cuda --json": Run(
            ON_DOUBLE.replace(" gpu ", " grade --device cuda ", 1) +
            "submissions/tuned/layer_norm_backward/submission.cu --stages build,core --json | python3 -m json.tool",
            needs="nvcc"),
        "build/assay gpu": Run(GPU_TO_JSON, needs="nvcc"),
        "build/assay gpu -c kv_cache --model tuned --json gpu.json": Run(GPU_TO_JSON, needs="nvcc"),
        "ninja -C build gpu_link && build/benchmarks/gpu_link": Target("benchmarks/gpu_link"),
        "build/assay gpu --sizes sim --modelled": Run(
            ON_DOUBLE + "-c layer_norm_backward --no-check --quick --few --sizes sim --modelled | grep modelled",
            needs="nvcc"),
        "scripts/gpu-check.sh": Run(
            "cd $ROOT && scripts/gpu-check.sh --results $TMP/checked --quick --model tuned -c layer_norm_backward "
            f"{DOUBLES}&& "
            "ls $TMP/checked/scoreboard.json $TMP/checked/benchmarks/gpu_simulated_h200_*.md", slow=True, needs="nvcc"),
    },
    "docs/grading.md": {
        "build/assay rerun textbook ternary_training --device cpu --case real_text --corpus my.txt": Run(
            "cat src/*/*.cpp >my.txt && build/assay rerun textbook ternary_training --device cpu --case real_text "
            "--corpus my.txt | tee $TMP/said && grep ^real_text.*OK $TMP/said", slow=True),
        "build/assay show textbook kv_cache --device sim --gpu a100": Run(),
        "build/assay show textbook kv_cache --device cpu --json": Run(),
    },
    "docs/isolation.md": {
        "build/assay doctor": Run(status=(0, 1)),
    },
    "docs/many-machines.md": {
        # tests/cli/slurm_test.py and scripts/test-slurm.sh submit; here only the array is made.
        "build/assay slurm --array 32 --partition cpu --time 2:00:00 -- --device cpu": Run(
            "build/assay slurm --array 32 --partition cpu --time 2:00:00 --dry-run -- --device cpu "
            "| grep -e '--exclusive --partition=cpu --time=2:00:00'"),
        "build/assay slurm --array 32 --nodes 8 --dry-run -- --device cpu": Run(),
        # Two machines, both of them this one, and an answer.
        "for i in 1 2 3; do ssh n$i assay/build/assay run --shard $i/3 --seed 7 --results part & done; wait": Run(SHARDS),
        "for i in 1 2 3; do rsync -a n$i:part/ parts/n$i/; done": Run("for i in 1 2 3; do echo rsync n$i; done"),
        "build/assay merge parts/*/": Run(SHARDS),
        "podman build -t assay .": Run("python3 tests/structure/container_recipe_test.py $ROOT"),
        "podman run --rm -v \"$PWD:/work\" assay run --device cpu": Run(
            "grep -x 'ENTRYPOINT \\[\"assay\"\\]' $ROOT/Containerfile && grep -x 'WORKDIR /work' $ROOT/Containerfile"),
        "scripts/test-slurm.sh": Run("bash -n scripts/test-slurm.sh"),
    },
    "docs/models.md": {
        "build/assay ask --url http://localhost:8000/v1 --model my-model --challenge kv_cache --dry-run": Run(),
        "build/assay ask --url http://localhost:8000/v1 --model my-model --challenge kv_cache": asked(""),
        "build/assay run --model my-model": Run(RUN_SCRIPT, slow=True),
        "build/assay ask --url http://localhost:8000/v1 --model m --as m-high --param reasoning_effort=high": asked(
            "--as m-high --param reasoning_effort=high"),
        "build/assay ask --url http://localhost:8000/v1 --model m --samples 3 --temperature 0.6 --seed 1": asked(
            "--as sampled --samples 3 --temperature 0.6 --seed 1"),
        # This command runs the answers, as tests/cli/ask_to_board_test.py does.
        "build/assay ask --url http://localhost:8000/v1 --model m --as m-4-turns --turns 4": asked(
            "--as turns --turns 4 --dry-run"),
        "build/assay solve --as claude --prompt-stdin -- claude -p --allowedTools Bash,Edit,Read,Write": solved(
            "claude", "--prompt-stdin -- claude -p --allowedTools Bash,Edit,Read,Write"),
        "build/assay solve --as codex --prompt-stdin -- codex exec --skip-git-repo-check -s workspace-write -": solved(
            "codex", "--prompt-stdin -- codex exec --skip-git-repo-check -s workspace-write -"),
        "build/assay solve --as aider -- aider --no-git --yes-always --message-file {prompt} submission.cpp": solved(
            "aider", "-- aider --no-git --yes-always --message-file {prompt} submission.cpp"),
    },
    "docs/serving.md": {
        "build/assay serve --state /var/lib/assay": served("true"),
        "curl -s http://127.0.0.1:8077/v1/grade -H 'Content-Type: application/json' -d @request.json": served(
            "echo '{\"challenge\": \"kv_cache\", \"chat\": \"no\"}' >request.json; curl -s $URL/v1/grade "
            "-H 'Content-Type: application/json' -d @request.json | grep '\"challenge\":\"kv_cache\"'", needs="curl"),
        "curl -s 'http://127.0.0.1:8077/v1/tasks/ID?wait=30'": served(
            "curl -s \"$URL/v1/tasks/ID?wait=30\" | grep unknown_task", needs="curl"),
        "python3 clients/python/assay_client.py http://127.0.0.1:8077 kv_cache answer1.cpp answer2.md": served(
            "echo no >answer2.md; python3 $ROOT/clients/python/assay_client.py $URL kv_cache answer2.md | grep ' 0.000 '"),
        "python3 benchmarks/serve_load.py build/assay .": Run(
            "python3 $ROOT/benchmarks/serve_load.py build/assay $ROOT --smoke", slow=True),
        # The smoke run also soaks for a moment.
        "python3 benchmarks/serve_load.py build/assay . --language cpp --soak 5000": Run(
            "python3 $ROOT/benchmarks/serve_load.py --help | grep -- '--soak'"),
    },
    "docs/simulator.md": {
        "build/assay sim tests/sim/runtime/programs/basics.cu": Run(needs="nvcc"),
        "build/assay sim --help": Run(),
        "ninja -C build sim_speed && build/benchmarks/sim_speed": Target("benchmarks/sim_speed"),
        "ninja -C build sim_against_cpp && build/benchmarks/sim_against_cpp": Target("benchmarks/sim_against_cpp"),
        "python3 benchmarks/gpu_calibration.py results/scoreboard.json": Run(
            "python3 $ROOT/benchmarks/gpu_calibration.py $ROOT/results/scoreboard.json"),
        "scripts/fuzz.sh 600 ptx_parser device_messages": Run("scripts/fuzz.sh --list | grep device_messages"),
    },
    "docs/site.md": {
        "build/assay board": Run("build/assay board --out $TMP/site && test -s $TMP/site/index.html"),
        "build/assay board --no-sources --out /tmp/site": Run(
            "build/assay board --no-sources --out $TMP/public && test -s $TMP/public/index.html"),
        "ninja -C build site_size && build/benchmarks/site_size": Target("benchmarks/site_size"),
        "scripts/test.sh --browser": CalledBy(".ci/run"),
    },
    "docs/threat-model.md": {
        "build/assay attack --list": Run(),
        "build/assay attack T03": Run("build/assay attack M08"),
        "build/assay attack --fast": Run("build/assay attack --fast --list"),
    },
    "docs/timing.md": {
        "scripts/noise.py --help": Run(),
        # Quick runs may vary by more than two points; that is no fault of the document.
        "scripts/noise.py --model tuned --challenge layer_norm_backward --device cpu --runs 2 --quick": Run(
            "scripts/noise.py --model tuned --challenge layer_norm_backward --device cpu --runs 2 --quick "
            "--points 100 --assay build/assay", slow=True),
        "build/assay run --model textbook --march x86-64-v3 --results /tmp/v3": Run(
            "build/assay run -m textbook -c layer_norm_backward --device cpu --quick --march x86-64 --results $TMP/v1 "
            "&& build/assay show textbook layer_norm_backward --results $TMP/v1 | grep 'for x86-64$'"),
        "build/assay doctor": Run(status=(0, 1)),
        "python3 benchmarks/check_time.py build/assay .": Run(
            "python3 $ROOT/benchmarks/check_time.py build/assay . --smoke layer_norm_backward", slow=True),
        "python3 benchmarks/cell_time.py build/assay .": Run(
            "python3 $ROOT/benchmarks/cell_time.py build/assay . --smoke layer_norm_backward", needs="nvcc", slow=True),
        # There may be no free GPU here.
        "python3 benchmarks/gpu_peers.py": Run("python3 $ROOT/benchmarks/gpu_peers.py --list | grep decode_gqa"),
        "ninja -C build par_and_peers && build/benchmarks/par_and_peers": Target("benchmarks/par_and_peers"),
        "ninja -C build harness_overhead && build/benchmarks/harness_overhead": Target("benchmarks/harness_overhead"),
    },
}


def name_of(document):
    return str(document.relative_to(ROOT))


def blocks(document, language):
    """The fenced blocks of a language, without their fences."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.M | re.S)


def documented_commands(document):
    lines = "".join(blocks(document, "sh")).splitlines()
    return [line for line in (re.sub(r"(^|\s+)# .*", "", line).rstrip() for line in lines) if line]


def without_generated(text):
    """The lines written by people, with their numbers. A generated part begins with
    `<!-- NAME: made by MAKER -->` or `<!-- assay:begin -->` and goes to that name's end."""
    end = None
    for number, line in enumerate(text.splitlines(), 1):
        if end is None:
            if begin := re.fullmatch(r"<!-- (?:(\w+): made by .*|assay:begin) -->", line):
                end = f"<!-- end of {begin[1]} -->" if begin[1] else "<!-- assay:end -->"
            else:
                yield number, line
        elif line == end:
            end = None
    if end is not None:
        raise ValueError(f"no line {end}")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def anchors(document):
    """The anchors of a document's headings, as GitHub generates them."""
    found = collections.Counter()
    names = set()
    for title in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.M | re.S), re.M):
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


@functools.cache
def help_of(*command):
    return subprocess.run([*command, "--help"], capture_output=True, text=True, check=True, cwd=ROOT).stdout


@functools.cache
def subcommands():
    listed = help_of(ASSAY).split("\nSubcommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\w+)", listed, re.M)


def options_of(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def digits_masked(line):
    return re.sub(r"\s+", " ", re.sub(r"-?\d+", "0", line)).strip()


def present(tool):
    places = {"nvcc": ["/usr/local/cuda/bin/nvcc"]}.get(tool, [])
    return shutil.which(tool) is not None or any(os.access(place, os.X_OK) for place in places)


class Prose(unittest.TestCase):
    def test_no_line_is_too_long(self):
        long = [f"{name_of(d)}:{n}: {len(line)} columns" for d in DOCUMENTS
                for n, line in without_generated(d.read_text()) if len(line) > COLUMNS]
        self.assertEqual(long, [])

    def test_the_readme_is_read_in_five_minutes(self):
        self.assertLessEqual((ROOT / "README.md").stat().st_size, README_BYTES)

    def test_relative_links_and_anchors_lead_somewhere(self):
        broken = []
        for document in [*DOCUMENTS, ROOT / "results" / "RANKINGS.md", *sorted(ROOT.glob("analysis/**/*.md"))]:
            for link in re.findall(r"\]\(([^)\s]+)\)", without_code(document.read_text())):
                if "://" in link:
                    continue
                path, _, anchor = link.partition("#")
                target = (document.parent / path).resolve() if path else document
                if not target.exists() or (anchor and anchor not in anchors(target)):
                    broken.append(f"{name_of(document)}: {link}")
        self.assertEqual(broken, [])

    def test_the_readme_leads_to_every_document(self):
        links = set(re.findall(r"\]\((docs/[^)#]+\.md)", (ROOT / "README.md").read_text()))
        self.assertEqual(links, {name_of(d) for d in ROOT.glob("docs/*.md")})

    def test_the_source_map_names_every_folder(self):
        text = (ROOT / "docs" / "architecture.md").read_text()
        folders = [p for p in (ROOT / "src").iterdir() if p.is_dir()]
        self.assertGreater(len(folders), 10)
        self.assertEqual([p.name for p in folders if f"| `src/{p.name}/` |" not in text], [])

    def test_the_readme_is_where_the_rankings_go(self):
        lines = (ROOT / "README.md").read_text().splitlines()
        self.assertEqual([lines.count(f"<!-- assay:{m} -->") for m in ("begin", "end")], [1, 1])


class ThreatModel(unittest.TestCase):
    """Each promise names an existing check."""

    def promises(self):
        text = without_blocks((ROOT / "docs" / "threat-model.md").read_text())
        return [" ".join(item.split()) for item in re.findall(r"^- (.*?)(?=^- |^#|^$)", text, re.M | re.S)]

    def test_every_promise_names_a_check(self):
        self.assertGreater(len(self.promises()), 30)
        self.assertEqual([p for p in self.promises() if not re.search(r"\[[^\]]+\]$", p)], [])

    def test_the_checks_exist(self):
        attacks = {p.name.split("_")[0] for p in (ROOT / "tests" / "attacks").iterdir()}
        sources = [p.read_text() for p in ROOT.glob("tests/**/*_test.cpp")]
        suites = {(m[0], m[1]) for s in sources for m in re.findall(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", s, re.M)}
        known = attacks | {".".join(s) for s in suites} | {s for s, _ in suites} | {c.__name__ for c in (Prose, Help, Commands)}
        named = [n for p in self.promises() for n in re.split(r",\s*", p[p.rindex("[") + 1:-1])]
        self.assertEqual([n for n in named if n not in known], [])


class Help(unittest.TestCase):
    def test_every_command_teaches(self):
        self.assertIn("run", subcommands())
        for command in subcommands():
            text = help_of(ASSAY, command)
            with self.subTest(command):
                self.assertIn("\nExit status:", text)
                self.assertIn(f"\n  assay {command}", text.split("\nExamples:\n")[-1] if "\nExamples:\n" in text else "")

    def test_the_readme_lists_the_commands(self):
        section = (ROOT / "README.md").read_text().split("## The commands")[1].split("\n\n")[1]
        cells = [line.split(" | ")[0] for line in section.splitlines()[2:]]
        table = [name for cell in cells for name in re.findall(r"`(\w+)[^`]*`", cell)]
        self.assertEqual(sorted(table), sorted(subcommands()))

    def test_documented_options_exist(self):
        """Checks commands, and code within the text."""
        unknown = []
        for document in DOCUMENTS:
            text = document.read_text()
            for line in [*documented_commands(document), *re.findall(r"`([^`\n]+)`", without_blocks(text))]:
                words = re.sub(r"^(build/)?assay |^scripts/run.sh", "", line).split()
                if line.startswith(("build/assay ", "assay ")) and words[0] in subcommands():
                    known = options_of(help_of(ASSAY, words[0])) | options_of(help_of(ASSAY))
                elif line.startswith("scripts/run.sh"):
                    known = options_of(help_of(ASSAY, "run"))
                elif line.startswith("scripts/noise.py"):
                    known = options_of(help_of(sys.executable, ROOT / "scripts" / "noise.py"))
                else:
                    continue
                # Options after a lone -- belong to another program.
                unknown += [f"{name_of(document)}: {line}: {o}"
                            for o in options_of(line.split(" -- ")[0]) - known - {"--help"}]
        self.assertEqual(unknown, [])


def without_blocks(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A tree that looks like the repository after the build, in which commands may write."""
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-docs-"))
        cls.tree, cls.temporary = cls.folder / "tree", cls.folder / "tmp"
        (cls.tree / "build").mkdir(parents=True)
        cls.temporary.mkdir()
        for name in ("challenges", "include", "src", "submissions", "scripts", "tests", "gpus", "docs",
                     "kernels"):
            (cls.tree / name).symlink_to(ROOT / name)
        (cls.tree / "build" / "assay").symlink_to(ASSAY)
        shutil.copy(ROOT / "README.md", cls.tree)
        shipped_board.copy_results(ROOT, cls.tree / "results")
        shutil.copytree(ROOT / "analysis", cls.tree / "analysis")
        cache = ROOT / ".cache"
        cache.mkdir(exist_ok=True)
        (cls.tree / ".cache").symlink_to(cache)
        cls.doubles = open_copies(*(BUILD / "tests" / name for name in
                                    ("libcuda_double.so", "libnvidia-ml-double.so")))[0].parent
        cls.outputs = {}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def execute(self, command, statuses=(0,)):
        """The output of the command. Each command is run only once."""
        if command not in self.outputs:
            environment = {k: v for k, v in os.environ.items() if k != "ASSAY_ROOT"}
            environment |= {"TMP": str(self.temporary), "ROOT": str(ROOT), "BUILD": str(BUILD),
                            "DOUBLES": str(self.doubles)}
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=self.tree, env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            self.outputs[command] = done
        done = self.outputs[command]
        self.assertIn(done.returncode, statuses, f"{command}\n{done.stdout[-3000:]}")
        return done.stdout

    def test_every_command_has_a_row_and_every_row_a_command(self):
        documented = {(name_of(d), c) for d in DOCUMENTS for c in documented_commands(d)}
        rows = {(document, command) for document, table in COMMANDS.items() for command in table}
        self.assertEqual(documented - rows, set(), "documented, but without a row")
        self.assertEqual(rows - documented, set(), "a row, but in no document")

    def test_every_command_works(self):
        for document, table in COMMANDS.items():
            for command, how in table.items():
                with self.subTest(f"{document}: {command}"):
                    if isinstance(how, Target):
                        self.check_target(how)
                    elif isinstance(how, CalledBy):
                        lines = (ROOT / how.script).read_text().splitlines()
                        self.assertIn(command, [line.strip() for line in lines])
                    elif how.slow != SLOW:
                        continue
                    elif how.needs and not present(how.needs):
                        print(f"not run without {how.needs}: {command}", file=sys.stderr)
                    else:
                        self.execute(how.command or command, how.status)

    def check_target(self, target):
        known = re.findall(r"^build ([^:]*):", (BUILD / "build.ninja").read_text(), re.M)
        self.assertTrue(target.name in known, f"no target {target.name} in build.ninja")

    @unittest.skipIf(SLOW, "run with the others")
    def test_the_excerpt_in_the_readme_is_what_the_command_prints(self):
        """Ignores its numbers, which change with every board."""
        excerpt = blocks(ROOT / "README.md", "text")
        self.assertEqual(len(excerpt), 1)
        shown = re.sub(r"\n {14}", " ", self.execute("build/assay show flawed kv_cache"))  # lines are broken
        printed = {digits_masked(line) for line in shown.splitlines()}
        for line in excerpt[0].splitlines():
            masked = digits_masked(line)
            whole = masked in printed or masked == "..."
            cut = masked.endswith("...") and any(p.startswith(masked[:-3]) for p in printed)
            self.assertTrue(whole or cut, line)

    @unittest.skipIf(SLOW, "run with the others")
    def test_the_replay_line_in_the_readme_replays(self):
        """Runs it as shown: the verdict and, digits aside, the detail must be those shown above it."""
        excerpt = blocks(ROOT / "README.md", "text")[0]
        [name, verdict] = re.search(r"^  (\w+ \(\w+\)): (\w+)", excerpt, re.M).groups()
        [detail] = re.findall(r"^    detail    (.*)$", excerpt, re.M)
        [replay] = re.findall(r"^    replay    (.*)$", excerpt, re.M)
        printed = self.execute(f"PATH=$PWD/build:$PATH {replay}")
        self.assertIn(f"{name}: {verdict},", printed)
        self.assertIn(digits_masked(f"detail {detail}"), [digits_masked(line) for line in printed.splitlines()])


class Figures(unittest.TestCase):
    """Counts in the documents are those of the programs."""

    def counts_of(self, things):
        """Each number that precedes one of these words: (document, number)."""
        number = r"(?<![\w.#§-])(\d[\d,]*|(?:\w+ )?hundred)(?: small| hostile| shipped)*"
        for document in DOCUMENTS:
            text = " ".join(line for _, line in without_generated(document.read_text()))
            for found in re.findall(rf"{number} (?:{things})\b", " ".join(text.split())):
                yield name_of(document), found.replace(",", "")

    def test_attacks(self):
        listed = json.loads(subprocess.run([ASSAY, "--root", ROOT, "attack", "--list", "--json"], check=True,
                                           capture_output=True).stdout)
        attacks = [row for row in listed if not row["canary"]]
        found = list(self.counts_of("attacks|submissions"))
        self.assertIn("README.md", [document for document, _ in found])
        self.assertEqual([f for f in found if f[1] != str(len(attacks))], [])


if __name__ == "__main__":
    unittest.main()
