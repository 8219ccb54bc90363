#!/usr/bin/env python3
"""benchmarks/gpu_peers.py without a GPU: what it prints then, and the shapes of every timed case.

Usage: gpu_peers_test.py ROOT. Torch is replaced by small fakes, so it does not matter what is
installed. On a GPU the program itself checks its results, against float64.
"""
import ast
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
sys.dont_write_bytecode = True
import gpu_peers  # noqa: E402
import gpu_peers_cases as cases  # noqa: E402

MISSING_TORCH = "raise ImportError('not here')\n"
TORCH_WITHOUT_GPU = """
__version__ = "9.9"
class version: cuda = "13.0"
class cuda:
    @staticmethod
    def is_available(): return False
"""


def timed_cases(spec):
    return [case for case in spec["cases"] if case["group"] == "timed"]


def shipped_specs():
    return [json.loads(file.read_text()) for file in sorted(ROOT.glob("challenges/*/spec.json"))]


class Program(unittest.TestCase):
    def run_with(self, torch, *arguments):
        with tempfile.TemporaryDirectory(prefix="assay-gpu-peers-") as folder:
            pathlib.Path(folder, "torch.py").write_text(torch)
            return subprocess.run([sys.executable, "-B", BENCHMARKS / "gpu_peers.py", *arguments],
                                  capture_output=True, text=True, timeout=60,
                                  env={**os.environ, "PYTHONPATH": folder})

    def assert_unusable(self, done, *words):
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in ("gpu_peers.py: ", *words):
            self.assertIn(word, done.stderr)

    def test_says_that_torch_is_missing(self):
        done = self.run_with(MISSING_TORCH)
        self.assert_unusable(done, "no PyTorch", "install a torch with CUDA")

    def test_says_that_no_gpu_is_found(self):
        done = self.run_with(TORCH_WITHOUT_GPU)
        self.assert_unusable(done, "torch 9.9", "CUDA 13.0", "no CUDA GPU", "run this on a machine")

    def test_refuses_names_that_no_timed_case_has(self):
        for arguments, words in ((["--case", "nix"], ["--case nix", "time_gqa"]),
                                 (["--challenge", "nix"], ["--challenge nix", "kv_cache"]),
                                 (["--challenge", "kv_cache", "--case", "time_gqa"],
                                  ["no case in common"])):
            self.assert_unusable(self.run_with(MISSING_TORCH, *arguments), *words)

    def test_lists_every_timed_case_without_torch(self):
        done = self.run_with(MISSING_TORCH, "--list")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        listed = {tuple(line.split("  ")[:3]) for line in done.stdout.splitlines()}
        expected = {(spec["name"], case["name"], "full")
                    for spec in shipped_specs() for case in timed_cases(spec)}
        self.assertEqual(listed, expected)

    def test_lists_only_what_is_asked_for(self):
        done = self.run_with(MISSING_TORCH, "--list", "--sizes", "sim", "--case", "time_gqa",
                             "--challenge", "flash_attention_fwd")
        self.assertEqual(done.stdout,
                         "flash_attention_fwd  time_gqa  sim  scaled_dot_product_attention: "
                         "q f32 [1, 4, 128, 128], k f32 [1, 1, 1024, 128], "
                         "v f32 [1, 1, 1024, 128]\n")

    def test_help_names_options_and_statuses(self):
        done = self.run_with(MISSING_TORCH, "--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--sizes", "--case", "--challenge", "--json", "--list", "Exit status",
                     "float64"):
            self.assertIn(word, done.stdout)


# Knows only the newer name of a field, and only the GPU with the identifier "GPU-known".
FAKE_SMI = """#!/bin/sh
case "$*" in *--id=GPU-other*|*clocks_throttle_reasons*) echo 'not a valid field'; exit 2;; esac
echo 'NVIDIA H100, 580.1, 1980 MHz, 2619 MHz, 31, Enabled, 0x0000000000000001'
"""


class Reports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-gpu-peers-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_rows_hold_median_and_quartiles_in_seconds(self):
        peer = cases.Peer("c", "t", "full", operator="topk")
        row = gpu_peers.row_of(peer, "math", "folded", [5e-6, 1e-6, 4e-6, 2e-6, 3e-6], 1e-7)
        for name, expected in (("low_s", 2e-6), ("median_s", 3e-6), ("high_s", 4e-6)):
            self.assertAlmostEqual(row.pop(name), expected)
        self.assertEqual(row, {"challenge": "c", "case": "t", "sizes": "full", "backend": "math",
                               "operator": "topk (folded)", "repetitions": 5, "error": 1e-7})

    def test_what_is_left_out_is_said_once_for_each_reason(self):
        peer = cases.Peer("c", "t", "full")
        entries = [gpu_peers.untimed(peer, "no f32", backend, way) for backend, way in
                   (("cudnn", "grouped"), ("cudnn", "folded"), ("math", "folded"))]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            gpu_peers.print_left_out([*entries, gpu_peers.untimed(peer, "a program")], {"math"})
        self.assertEqual([" ".join(line.split()) for line in said.getvalue().splitlines()],
                         ["c t left out: cudnn, math (folded): no f32", "c t left out: a program"])

    def test_json_replaces_the_file_whole(self):
        path = self.folder / "out.json"
        path.write_text("older and much longer than what follows")
        gpu_peers.write_json(path, {"cases": []})
        self.assertEqual(json.loads(path.read_text()), {"cases": []})
        self.assertEqual(os.listdir(self.folder), ["out.json"])

    def test_json_that_cannot_be_written_names_the_file(self):
        path = self.folder / "missing" / "out.json"
        with self.assertRaisesRegex(gpu_peers.Unusable, f"{path}: cannot be written"):
            gpu_peers.write_json(path, {})

    def smi_state(self, uuid):
        with unittest.mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
            return gpu_peers.smi_state(uuid)

    def test_nvidia_smi_is_asked_by_both_names_and_without_an_unknown_identifier(self):
        self.assertEqual(self.smi_state("known"), {})  # no nvidia-smi yet
        program = self.folder / "nvidia-smi"
        program.write_text(FAKE_SMI)
        program.chmod(0o755)
        for uuid in ("known", "other", ""):
            state = self.smi_state(uuid)
            self.assertEqual(state["clocks.sm"], "1980 MHz", uuid)
            self.assertEqual(state["clocks_reasons.active"], "0x0000000000000001", uuid)


class Parameters(unittest.TestCase):
    CASE = {"params": {"a": 1, "config": {"x": 1, "y": 2}, "list": [1, 2]},
            "sim": {"params": {"config": {"y": 3}, "list": [9], "a": None}}}

    def test_full_sizes_are_the_params(self):
        self.assertEqual(cases.params_of(self.CASE, "full"), self.CASE["params"])

    def test_sim_merges_objects_and_replaces_lists(self):
        self.assertEqual(cases.params_of(self.CASE, "sim"),
                         {"config": {"x": 1, "y": 3}, "list": [9]})
        self.assertEqual(self.CASE["params"]["config"]["y"], 2)

    def test_sim_without_params_keeps_them(self):
        for sim in (None, True):
            self.assertEqual(cases.params_of({"params": {"a": 1}, "sim": sim}, "sim"), {"a": 1})
        self.assertEqual(cases.params_of({"params": {"a": 1}}, "sim"), {"a": 1})

    def test_cases_that_the_simulator_lacks_have_no_sim_size(self):
        case = {"name": "t", "group": "timed", "params": {"rows": 2, "D": 3}, "sim": False}
        spec = {"name": "layer_norm_backward", "cases": [case]}
        self.assertEqual(len(cases.peers_of_spec(spec, "full")), 1)
        self.assertEqual(cases.peers_of_spec(spec, "sim"), [])


class Scripts(unittest.TestCase):
    def test_lengths_follow_appends_and_forks(self):
        script = ("create; new a; append a:10; fork a b; append a:1 b:2; phase; "
                  "attend b:1 a:1; phase; destroy")
        self.assertEqual(cases.play(script), ([12, 11], [1, 1], False))

    def test_appends_of_the_timed_phase_are_seen(self):
        script = ("phase; create; new a b; append a:7 b:7; attend a:1 b:1; phase; read any; "
                  "destroy")
        self.assertEqual(cases.play(script), ([7, 7], [1, 1], True))

    def test_unknown_statements_are_refused(self):
        for script in ("create; new a; append a:1; phase; truncate a:0; attend a:1; phase",
                       "create; new a; append a:1; phase; phase; attend a:1",
                       "create; new a; append a:1; phase; append a:1; attend a:1; phase"):
            with self.assertRaises(ValueError, msg=script):
                cases.play(script)


class Peers(unittest.TestCase):
    def peers(self, sizes="full"):
        return cases.read_peers(ROOT / "challenges", sizes)

    def shapes(self, challenge, case, sizes="full"):
        found = [p for p in self.peers(sizes) if (p.challenge, p.case) == (challenge, case)]
        return {name: shape for name, (_, shape) in found[0].inputs.items()}

    def test_every_peer_has_a_kind_that_the_timer_knows_or_a_reason(self):
        tree = ast.parse((BENCHMARKS / "gpu_peers_torch.py").read_text())
        kinds = next(node.value for node in tree.body
                     if isinstance(node, ast.Assign) and node.targets[0].id == "KINDS")
        known = {key.value for key in kinds.keys}
        used = set()
        for sizes in cases.SIZES:
            for p in self.peers(sizes):
                self.assertNotEqual(bool(p.kind), bool(p.left_out), p)
                if p.kind:
                    self.assertTrue(p.inputs and p.operator, p)
                    used.add(p.kind)
        self.assertEqual(used, known)

    def test_only_whole_training_is_left_out(self):
        for sizes in cases.SIZES:
            left_out = [(p.challenge, p.case) for p in self.peers(sizes) if p.left_out]
            self.assertEqual(left_out, [("ternary_training", "time_train")])

    def test_shapes_hold_positive_numbers_and_known_dtypes(self):
        for sizes in cases.SIZES:
            for p in self.peers(sizes):
                for dtype, shape in p.inputs.values():
                    self.assertIn(dtype, ("f32", "bf16", "f16"))
                    self.assertTrue(shape and all(isinstance(n, int) and n > 0 for n in shape), p)

    def test_keys_and_values_fit_the_queries(self):
        for sizes in cases.SIZES:
            for p in self.peers(sizes):
                if "q" not in p.inputs:
                    continue
                q, k, v = (p.inputs[name][1] for name in "qkv")
                self.assertEqual(k, v)
                self.assertEqual(q[-1], k[-1])
                if p.facts.get("sees") == cases.LENGTHS:
                    self.assertEqual(max(p.facts["lengths"]), k[2])

    def test_shapes_of_some_cases_are_those_of_the_specs(self):
        # Written out, so that a change of a spec or of the shapes made from it is noticed.
        self.assertEqual(self.shapes("layer_norm_backward", "time_8192x768"),
                         {"x": (8192, 768), "dy": (8192, 768), "gamma": (768,), "beta": (768,)})
        self.assertEqual(self.shapes("flash_attention_bwd", "time_gqa", "sim"),
                         {"q": (1, 4, 256, 128), "k": (1, 1, 256, 128), "v": (1, 1, 256, 128),
                          "dout": (1, 4, 256, 128)})
        self.assertEqual(self.shapes("dflash_verify", "attention_8192")["k"], (1, 8252, 4, 128))
        self.assertEqual(self.shapes("dflash_verify", "accept_64"),
                         {"node_logits": (4096, 32000), "root_logits": (64, 32000)})
        self.assertEqual(self.shapes("kv_cache", "decode_gqa")["k"], (8, 8, 2048, 128))
        self.assertEqual(self.shapes("kv_cache", "decode_gqa", "sim")["q"], (8, 1, 16, 128))
        self.assertEqual(self.shapes("kv_cache", "decode_forks")["k"], (8, 4, 2056, 128))
        self.assertEqual(self.shapes("kv_cache", "decode_ragged")["new_k"], (1, 32, 2, 64))
        self.assertEqual(self.shapes("beam_search", "items_64_beams_4")["rows"], (32, 256, 4096))
        self.assertEqual(self.shapes("ternary_training", "time_linear")["w"], (512, 2048))

    def test_what_torch_does_not_offer_is_left_out_with_a_reason(self):
        for name, params in (("flash_attention_fwd", {"Nq": 8, "softcap": 3.0}),
                             ("flash_attention_fwd", {"Nq": 8, "window": 4}),
                             ("layer_norm_backward", {"rows": 1, "D": 1, "mode": "rms"}),
                             ("kv_cache", {"config": {"n_q": 2, "n_kv": 1, "D": 8, "quant": 4},
                                           "script": ""}),
                             ("beam_search", {"B": 1, "K": 2, "V": 8, "max_new": 2, "alpha": 1,
                                              "groups": 2}),
                             ("a_new_challenge", {})):
            spec = {"name": name, "cases": [{"name": "t", "group": "timed", "params": params}]}
            (peer,) = cases.peers_of_spec(spec, "full")
            self.assertTrue(peer.left_out and not peer.kind, peer)

    def test_faults_of_specs_name_file_and_case(self):
        with tempfile.TemporaryDirectory(prefix="assay-gpu-peers-") as folder:
            file = pathlib.Path(folder, "layer_norm_backward", "spec.json")
            file.parent.mkdir()
            case = {"name": "no_rows", "group": "timed", "params": {"D": 3}}
            file.write_text(json.dumps({"name": "layer_norm_backward", "cases": [case]}))
            with self.assertRaisesRegex(cases.SpecError, f"{file}: case 'no_rows'.*'rows'"):
                cases.read_peers(folder, "full")
            file.write_text("{")
            with self.assertRaisesRegex(cases.SpecError, f"{file}: not JSON"):
                cases.read_peers(folder, "full")
            with self.assertRaisesRegex(cases.SpecError, "no spec.json"):
                cases.read_peers(file.parent, "full")


if __name__ == "__main__":
    unittest.main()
