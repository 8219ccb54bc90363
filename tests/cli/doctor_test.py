"""What `assay doctor` reports about a real GPU, on a driver that simulates one.

Usage: doctor_test.py ASSAY ROOT DRIVER MANAGEMENT [unittest arguments]. Uses only the standard library.
"""
import json
import pathlib
import subprocess
import sys
import unittest

ASSAY, ROOT, DRIVER, MANAGEMENT = (pathlib.Path(sys.argv.pop(1)) for _ in range(4))
sys.path.insert(0, str(ROOT / "tests" / "support"))
from open_copies import open_copies  # noqa: E402: from there

DRIVER, MANAGEMENT = open_copies(DRIVER, MANAGEMENT)


def findings(driver, management):
    """The findings by name. Whether the rest of the machine is healthy is not checked."""
    done = subprocess.run([ASSAY, "--root", ROOT, "doctor", "--json", "--driver", driver, "--management", management],
                          capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stdout + done.stderr)
    return {f["name"]: f for f in json.loads(done.stdout)}


class Doctor(unittest.TestCase):
    def test_a_gpu_is_described(self):
        found = findings(DRIVER, MANAGEMENT)
        self.assertEqual(found["GPU"]["value"],
                         "Simulated H200 at 0000:3b:00.0, compute capability 9.0, 132 multiprocessors, 64.0 GiB, "
                         "ECC on, MIG off")
        self.assertEqual(found["GPU, driver"]["value"], "580.95.05, for CUDA 13.0; persistence mode on")
        self.assertRegex(found["GPU, speed"]["value"], r"^copy \d+ GB/s, bf16 matrices by mma.sync \d+ TFLOP/s$")
        self.assertIn("1755 of at most 1980 MHz", found["GPU, clocks"]["value"])
        self.assertEqual(found["GPU, processes"]["value"], "nobody else computes on it")
        self.assertIn("only root may lock clocks", found["GPU, locked clocks"]["value"])
        self.assertTrue(all(f["good"] for name, f in found.items() if name.startswith("GPU")))

    def test_without_the_management_library_the_rest_is_told(self):
        found = findings(DRIVER, "/no/such/libnvidia-ml.so.1")
        self.assertIn("Simulated H200", found["GPU"]["value"])
        self.assertIn("no management library: /no/such/libnvidia-ml.so.1", found["GPU, management"]["value"])
        self.assertTrue(found["GPU, management"]["good"])
        self.assertNotIn("GPU, clocks", found)

    def test_no_gpu_is_one_line_that_says_why(self):
        found = findings("/no/such/libcuda.so.1", MANAGEMENT)
        self.assertIn("no GPU can be used: no CUDA driver: /no/such/libcuda.so.1", found["GPU"]["value"])
        self.assertNotIn("\n", found["GPU"]["value"])
        self.assertTrue(found["GPU"]["good"])
        self.assertEqual([name for name in found if name.startswith("GPU")], ["GPU"])


if __name__ == "__main__":
    unittest.main()
