#!/usr/bin/env python3
"""benchmarks/gpu_calibration.py on a small board; and docs/simulator.md shows the shipped board's figures. Beside it
benchmarks/gpu_table.py, whose rank correlation it uses, on a small measurement.

Usage: gpu_calibration_test.py ROOT
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()


def entry(model, device, *speeds):
    return {"cell": {"model": model, "challenge": "c", "attempt": "", "device": device},
            "score": {"speeds": [{"case": case, "ratio_to_par": speed} for case, speed in speeds]}}


class Calibration(unittest.TestCase):
    def run_on(self, board):
        with tempfile.TemporaryDirectory(prefix="assay-calibration-") as folder:
            path = pathlib.Path(folder, "scoreboard.json")
            path.write_text(json.dumps({"entries": board}))
            return subprocess.run([sys.executable, "-B", ROOT / "benchmarks" / "gpu_calibration.py", path],
                                  capture_output=True, text=True, timeout=30)

    def test_pairs_speeds_of_the_same_answer_and_case(self):
        done = self.run_on([entry("a", "sim", ("x", 0.5), ("y", 1.0), ("only", 9.0)), entry("a", "cpu", ("x", 7.0)),
                            entry("a", "cuda", ("x", 1.0), ("y", 0.5)), entry("b", "sim", ("x", 0.25)),
                            entry("b", "cuda", ("x", 0.25)), entry("c", "cuda", ("x", 3.0))])
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
        # (0.5, 1), (1, 0.5), (0.25, 0.25): two pairs agree and one does not.
        self.assertEqual(rows[2:], [["c", "3", "0.33", "1.00", "0.50", "2.00"], ["all", "3", "0.33", "1.00", "0.50", "2.00"]])

    def test_says_so_where_nothing_compares(self):
        done = self.run_on([entry("a", "sim", ("x", 0.5))])
        self.assertEqual(done.returncode, 1)
        self.assertIn("no answer with speeds on sim and on cuda", done.stderr)

    def test_the_document_shows_the_shipped_board(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "benchmarks" / "gpu_calibration.py"],
                              capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(done.stdout, (ROOT / "docs" / "simulator.md").read_text())


class Table(unittest.TestCase):
    GPU = {"name": "G", "driver": "13.0", "multiprocessors": 1, "memory_bytes": 2**30, "ecc": True, "copy_bytes_per_s": 1e12,
           "data_sheet": "g"}

    def model_of(self, *cases):
        """The section on the model, of cases with the times of naive and par."""
        timed = [{"case": f"case{n}", "naive": naive, "par": par, "answers": {}} for n, (naive, par) in enumerate(cases)]
        found = {"gpu": self.GPU, "seed": 1, "challenges": [{"challenge": "c", "subjects": [], "timed": timed}]}
        with tempfile.TemporaryDirectory(prefix="assay-table-") as folder:
            path = pathlib.Path(folder, "gpu.json")
            path.write_text(json.dumps(found))
            done = subprocess.run([sys.executable, "-B", ROOT / "benchmarks" / "gpu_table.py", path, "--model", path],
                                  capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.partition("## The simulator's model")[2]

    def test_model_and_measurement(self):
        text = self.model_of(({"median_s": 2e-6, "modelled_s": 1e-6}, {"median_s": 1e-6, "modelled_s": 2e-6}))
        for row in ("| c | -1.00 | 1.00 | 0.50 | 2.00 |", "| all | -1.00 | 1.00 | 0.50 | 2.00 |"):
            self.assertIn(row, text)

    def test_nothing_that_was_modelled_and_measured(self):
        text = self.model_of(({"median_s": 2e-6}, None))
        self.assertIn("| challenge | tau |", text)
        self.assertNotIn("| all |", text)


if __name__ == "__main__":
    unittest.main()
