"""Thrust and CUB on the simulator: right results and no findings.

Usage: algorithms_test.py ASSAY ROOT [unittest arguments]. Skipped without NVIDIA's compiler, which takes a minute for
the program.
"""
import sys
import unittest

from sim_test import NVCC, PROGRAMS, WithNvcc

ALGORITHMS = ("sort structures", "scan structures", "reduce structures", "unique structures", "find structures",
              "sort tuples", "reduce by key", "sort numbers", "segmented reduce")


@unittest.skipUnless(NVCC, "no nvcc of release 13: the CUDA programs are not run")
class Algorithms(WithNvcc):
    timeout = 1200

    def algorithms(self, *options):
        run = self.sim(*options, PROGRAMS / "algorithms.cu")
        if "thrust/find.h: No such file" in run.err:
            self.skipTest("this toolkit comes without Thrust and CUB")
        return run

    def test_over_numbers_tuples_and_structures(self):
        run = self.algorithms()
        self.assertRun(run, 0, "".join(f"{name} ok\n" for name in ALGORITHMS))
        self.assertIn("no findings", run.err, run.description)

    def test_in_another_order_of_blocks(self):
        run = self.algorithms("--seed", "3")
        self.assertRun(run, 0, "".join(f"{name} ok\n" for name in ALGORITHMS))


if __name__ == "__main__":
    if not NVCC:
        print("no nvcc of release 13: skipped")
        sys.exit(77)
    unittest.main()
