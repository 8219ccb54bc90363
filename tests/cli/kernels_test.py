"""Grades a par kernel as a user would: every case passes, and timed cases move no more bytes than they must.

Usage: kernels_test.py ASSAY ROOT CHALLENGE [unittest arguments]. Skipped (77) without nvcc.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT, CHALLENGE = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1)
KERNELS = ROOT / "kernels"
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
MOST_BYTES, LEAST_EFFICIENCY = 1.05, 0.95
# The device's allowance of processor time follows from the limit, and slow machines need room within it.
INSTRUCTION_LIMIT, MOST_OF_LIMIT = 1_000_000_000, 0.5
# The most bytes, relative to the fewest possible, and the least used share of the sectors. By case, or by challenge and
# case.
EXCEPTIONS = {
    # gamma and the column sums of 121 blocks are 5 % of the bytes; polling the barrier adds more.
    "time_4096x4096": (1.055, LEAST_EFFICIENCY),
    # All blocks wait for each other after 1.7 us of reading, and each poll of a waiting block reads a sector.
    "time_16x128256_k256": (1.12, 0.93),
    # Arithmetic is the limit: each block of 64 rows reads the keys, and chunks write partial results.
    "attention_2048": (1.75, LEAST_EFFICIENCY),
    "attention_8192": (5.2, LEAST_EFFICIENCY),
    "prefill_chunk": (10, 0.94),
    # Chunks write partial results. Chunks are short, so that enough reads are in flight. A chunk's maximum and sum fill
    # only 8 bytes of a sector.
    "decode_gqa": (1.09, LEAST_EFFICIENCY),
    "decode_ragged": (1.25, 0.89),
    # Each fork reads the tokens that all share; all but the first find them in the cache.
    "decode_forks": (8.3, LEAST_EFFICIENCY),
    # Arithmetic is the limit: each block of 64 queries reads the keys, and chunks write partial results.
    "time_1024": (6.8, LEAST_EFFICIENCY),
    "time_4096": (12.8, LEAST_EFFICIENCY),
    "time_gqa": (10.1, LEAST_EFFICIENCY),
    # The same on both sides: tiles of queries read the keys, and tiles of keys read the queries.
    ("flash_attention_bwd", "time_1024"): (9.1, LEAST_EFFICIENCY),
    ("flash_attention_bwd", "time_2048"): (11.7, LEAST_EFFICIENCY),
    ("flash_attention_bwd", "time_gqa"): (11.1, LEAST_EFFICIENCY),
    # Appended data is read, stored and read again.
    "create_fill_decode": (2.1, LEAST_EFFICIENCY),
    # Arithmetic is the limit: tiles of 64 rows and 32 or 64 columns each read their operands again.
    "time_linear": (6.1, LEAST_EFFICIENCY),
    "time_linear_tall": (5.9, LEAST_EFFICIENCY)}
# The floor of ternary training is in flops only. These are the bytes of x, dy, blocks, y, dx and dw_latent.
INPUTS_AND_OUTPUTS = {"time_linear": 2131968, "time_linear_tall": 2306816}
# Replays of bank conflicts relative to all passes over shared memory: in timed cases, and in the others. None is in an
# inner loop; the comments at the top of the kernels name them all. Tiny cases and draws are left out: there, what
# happens once per launch dominates.
FEWEST_PASSES = 1000
MOST_REPLAYS = {"layer_norm_backward": (0, 0), "kv_cache": (0, 0.13), "dflash_verify": (0, 0.1),
                "fused_softmax_topk": (0.08, 0.8), "beam_search": (0.001, 0.3),
                "flash_attention_fwd": (0.003, 0.05), "flash_attention_bwd": (0.002, 0.06),
                "ternary_training": (0.006, 0.15)}
# The tensor cores' share of floating-point operations: attention's products use them, its softmax does not. The timed
# cases are fp32; these are the cases of the other types.
LEAST_TENSOR_SHARE = 0.95
TENSOR_CASES = {"flash_attention_fwd": ("bf16_causal", "bf16_gqa", "f16_causal", "fp8_causal", "fp8_not_causal"),
                "flash_attention_bwd": ("bf16_causal", "bf16_shift", "bf16_gqa", "f16_causal"),
                "ternary_training": ("linear", "linear_bf16_long", "logits", "train")}
# Copies that are not launches: the candidates to the host, which asks the model, and the harness's copies that
# overwrite what a cache was given.
TRANSFERS = {"items_8_beams_8": 8, "items_1_beams_64": 6, "create_fill_decode": 4}

FULL_MARKS = {"correctness", "completeness", "resources"}
# Dimensions of these that have no case for the simulator.
NOT_GRADED = {"ternary_training": {"resources"}}


def bounds(case):
    """The most bytes that a timed case may move, and its least efficiency."""
    return EXCEPTIONS.get((CHALLENGE, case)) or EXCEPTIONS.get(case, (MOST_BYTES, LEAST_EFFICIENCY))


def graded(folder):
    """The evidence of the kernel, graded as an answer."""
    answer = folder / "submissions" / "par" / CHALLENGE
    answer.mkdir(parents=True)
    # An answer is one folder without subfolders.
    parts = {"submission.cu": KERNELS / f"{CHALLENGE}.cu"}
    parts.update({path.name: path for path in (KERNELS / "common").glob("*.h")})
    for name, path in parts.items():
        (answer / name).write_text(path.read_text().replace('#include "common/', '#include "'))
    done = subprocess.run([ASSAY, "--root", ROOT, "run", "--submissions", folder / "submissions", "--results",
                           folder / "results", "--device", "sim", "--challenge", CHALLENGE],
                          capture_output=True, text=True, timeout=2400)
    if done.returncode != 0:
        raise AssertionError(f"{done.returncode}\n{done.stdout}\n{done.stderr}")
    board = json.loads((folder / "results" / "scoreboard.json").read_text())
    entry, = board["entries"]
    return json.loads((folder / "results" / entry["evidence"]["path"]).read_text())


def launches_of_head():
    """How many launches the first line of the file promises per launch that the problem needs."""
    first = (KERNELS / f"{CHALLENGE}.cu").read_text().split("\n", 1)[0]
    found = re.search(r"\b(%s) launch(es)?\b" % "|".join(NUMBERS), first)
    if not found:
        raise AssertionError(f"the first line must say how many launches it needs: {first}")
    return NUMBERS[found[1]]


class Kernel(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="assay-kernels-") as folder:
            cls.evidence = graded(pathlib.Path(folder))
        cls.cases = cls.evidence["cell"]["cases"]
        cls.counted = {c["name"]: {m["name"]: m["value"] for m in c["metrics"]} for c in cls.cases}
        cls.timed = {c["name"]: cls.counted[c["name"]] for c in cls.cases if c["group"] == "timed"}
        cls.speeds = cls.evidence["score"]["speeds"]
        if not cls.timed or {s["case"] for s in cls.speeds} != set(cls.timed):
            raise AssertionError(f"the timed cases are {[*cls.timed]}, the speeds {cls.speeds}")

    def test_every_case_passes_and_nothing_is_left_out(self):
        wrong = {c["name"]: (c["verdict"], c.get("detail")) for c in self.cases if c["verdict"] != "OK"}
        self.assertEqual(wrong, {})
        found = {d["name"]: abs(d["points"] - d["max"]) < 1e-9 for d in self.evidence["score"]["dimensions"]}
        self.assertEqual({name: full for name, full in found.items() if name in FULL_MARKS},
                         dict.fromkeys(FULL_MARKS - NOT_GRADED.get(CHALLENGE, set()), True))

    def test_no_case_is_near_its_instruction_limit(self):
        cases = json.loads((ROOT / "challenges" / CHALLENGE / "spec.json").read_text())["cases"]
        limits = {c["name"]: c["sim"].get("instructions", INSTRUCTION_LIMIT)
                  for c in cases if isinstance(c.get("sim"), dict)}
        for name, m in self.counted.items():
            self.assertEqual(m["sim_instructions"] > 0, m["sim_launches"] > 0, name)
            self.assertLess(m["sim_instructions"], MOST_OF_LIMIT * limits.get(name, INSTRUCTION_LIMIT), name)

    def test_it_is_the_par_that_answers_are_graded_by(self):
        for name, m in self.timed.items():
            for counter in ("launches", "blocks"):
                self.assertEqual(m[f"par_sim_{counter}"], m[f"sim_{counter}"], name)
        # Only the inputs, which are drawn anew, change the speed: in top-k, how many candidates a threshold leaves.
        for speed in self.speeds:
            self.assertAlmostEqual(speed["ratio_to_par"], 1, delta=0.3, msg=speed["case"])

    def test_naive_par_and_the_floor_are_in_order(self):
        for speed in self.speeds:
            self.assertGreater(speed["ratio_to_naive"], 1, speed["case"])
            self.assertLess(speed["ratio_to_floor"], 1, speed["case"])

    def test_bytes_are_near_the_least(self):
        for name, m in self.timed.items():
            most, _ = bounds(name)
            sectors = (m["sim_global_load_sectors"] + m["sim_global_store_sectors"] + m["sim_local_sectors"] +
                       2 * m["sim_atomic_sectors"])
            least = INPUTS_AND_OUTPUTS.get(name) or m["least_bytes"]
            self.assertLessEqual(32 * sectors + m["sim_within_bytes"], most * least, name)

    def test_sectors_are_used(self):
        for name, m in self.timed.items():
            _, least = bounds(name)
            used = m["sim_global_load_bytes"] + m["sim_global_store_bytes"]
            sectors = m["sim_global_load_sectors"] + m["sim_global_store_sectors"]
            self.assertGreaterEqual(used, least * 32 * sectors, name)

    def test_nothing_is_in_local_memory(self):
        for name, m in self.timed.items():
            self.assertEqual(m["sim_local_load_bytes"] + m["sim_local_store_bytes"], 0, name)

    def test_shared_memory_has_no_bank_conflicts(self):
        counted = {name: m for name, m in self.counted.items()
                   if m.get("sim_shared_passes", 0) > (0 if name in self.timed else FEWEST_PASSES)
                   and not name.startswith("random_")}
        self.assertEqual(set(self.timed) - set(counted), set())
        found = {}
        for name, m in counted.items():
            share = m["sim_shared_replays"] / m["sim_shared_passes"]
            most = MOST_REPLAYS[CHALLENGE][0 if name in self.timed else 1]
            if share > most:
                found[name] = round(share, 4)
        self.assertEqual(found, {})

    def test_products_are_those_of_tensor_cores(self):
        if CHALLENGE not in TENSOR_CASES:
            self.skipTest("other limits than products")
        for name in (*self.timed, *TENSOR_CASES[CHALLENGE]):
            m = self.counted[name]
            self.assertGreaterEqual(m["sim_tensor_flops"], LEAST_TENSOR_SHARE *
                                    (m["sim_tensor_flops"] + m["sim_fp32_flops"]), name)
        for name, m in self.timed.items():
            self.assertGreaterEqual(m["sim_tensor_flops"], m["least_flops"], name)

    def test_launches_are_those_of_its_head(self):
        for name, m in self.timed.items():
            self.assertEqual(m["sim_launches"], launches_of_head() * m["least_launches"], name)
            self.assertLessEqual(m["sim_transfers"], TRANSFERS.get(name, 0), name)


if __name__ == "__main__":
    found = subprocess.run([ASSAY, "--root", ROOT, "doctor"], capture_output=True, text=True).stdout
    if "nvcc in the sandbox" not in found:
        print("no nvcc: skipped")
        sys.exit(77)
    unittest.main()
