"""assay attack from outside: what it prints, what it refuses, and its exit status.

Usage: attack_test.py ASSAY ROOT. Uses only the standard library.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
ATTACKS = ROOT / "tests" / "attacks"


def assay(*args):
    return subprocess.run([ASSAY, "--root", ROOT, "attack", *args], capture_output=True, text=True, timeout=600)


class Attack(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def attacks_of_its_own(self, header, code):
        """A new folder of attacks with the usual neighbour and one attack, X01."""
        for name in ("neighbour_honest", "shared", "targets"):
            shutil.copytree(ATTACKS / name, self.folder / name)
        (self.folder / "X01_own").mkdir()
        (self.folder / "X01_own" / "submission.cpp").write_text(header + code)
        return self.folder

    def test_lists_what_there_is_without_running_it(self):
        shown = assay("--list", "M12.inet", "P02")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"M12\.inet sockets: SV\n +opens a socket")
        self.assertEqual(len(shown.stdout.splitlines()), 4)
        for row in json.loads(assay("--list", "--json").stdout):
            self.assertTrue(row["what"] and row["expected"] and row["cases"], row)

    def test_every_challenge_has_its_four_attacks(self):
        rows = json.loads(assay("--list", "--json").stdout)
        challenges = {p.parent.name for p in ROOT.glob("challenges/*/spec.json")}
        for ids in (("D01", "D02"), ("S01", "S02", "S03"), ("R01", "R02", "R03"), ("R10",)):
            mine = {row["challenge"] for row in rows if row["id"].split(".")[0] in ids}
            self.assertEqual(mine, challenges, ids)

    def test_every_challenge_has_attacks_of_each_kind_beside_honest_twins(self):
        rows = json.loads(assay("--list", "--json").stdout)
        challenges = {p.parent.name for p in ROOT.glob("challenges/*/spec.json")}
        found = {(row["challenge"], kind) for row in rows for kind in row["kinds"] if row["dimension"]}
        wanted = {(c, kind) for c in challenges for kind in ("memory", "prediction", "order", "stops")}
        self.assertEqual(wanted - found, set())

    def test_every_mechanism_of_judgement_has_a_canary(self):
        rows = json.loads(assay("--list", "--json", "--fast").stdout)
        text = (ROOT / "src" / "attack" / "mechanism.cpp").read_text()
        mechanisms = re.findall(r"\{Mechanism::\w+, \"(\w+)\"\}", text)
        self.assertGreater(len(mechanisms), 5)
        self.assertEqual(sorted(row["canary"] for row in rows if row["canary"]), sorted(mechanisms))

    def test_an_attack_whose_mechanism_does_not_run_is_not_caught(self):
        header = "// attack: is broken\n// challenge: fused_softmax_topk\n// cases: basic\n// expect: WA\n"
        folder = self.attacks_of_its_own(header, '#include "bare.h"\nint attack(assay_ctx*) { return ASSAY_OK; }\n')
        shown = assay("--attacks", folder)
        self.assertEqual(shown.returncode, 1, shown.stderr)
        self.assertRegex(shown.stdout, r"X01 +own +WA +WA .*UNEXPECTED: its mechanism did not run")

    def test_a_canary_that_goes_unreported_is_named(self):
        header = "// attack: does nothing wrong\n// challenge: fused_softmax_topk\n// cases: basic\n// expect: honest\n"
        code = '#include "target.h"\nint attack(Call& call) {\n  witness();\n  return call.honest();\n}\n'
        folder = self.attacks_of_its_own(header + "// canary: leftovers\n", code)
        shown = assay("--attacks", folder)
        self.assertEqual(shown.returncode, 1, shown.stderr)
        self.assertRegex(shown.stdout, "UNEXPECTED: the suite is blind: its judgement of leftovers reported nothing")
        self.assertRegex(shown.stdout.splitlines()[-1], r"0 of 1 canaries reported, BLIND to leftovers$")

    def test_the_canaries(self):
        """The attacks that need no quiet machine."""
        shown = assay("Y01", "Y02", "Y03", "Y05", "Y06", "Y07", "Y08", "Y09")
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)
        self.assertRegex(shown.stdout.splitlines()[-1], r"8 of 8 canaries reported$")
        self.assertRegex(shown.stdout, r"Y08 .* hung .*canary: reported by the judgement of hang")

    def test_a_caught_attack(self):
        shown = assay("M08", "--json")
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)
        found = json.loads(shown.stdout)
        (row,) = found["attacks"]
        self.assertEqual((row["observed"], row["complaint"], row["neighbour"], row["left_behind"]), ("WA", "", "", []))
        self.assertEqual((found["caught"], found["missed"]), (1, 0))

    def test_an_attack_that_is_not_caught(self):
        header = "// attack: is honest but says that it should be caught\n// challenge: fused_softmax_topk\n"
        folder = self.attacks_of_its_own(header + "// cases: basic\n// expect: SV\n", '#include "honest.inl"\n')
        shown = assay("--attacks", folder)
        self.assertEqual(shown.returncode, 1, shown.stderr)
        self.assertRegex(shown.stdout, r"X01 +own +SV +honest .*UNEXPECTED: honest is wrong")
        self.assertRegex(shown.stdout.splitlines()[-1], r"^0 of 1 attacks caught \(0\.0 %\), 0 skipped; ")
        self.assertIn("[1/1] X01 own: honest", shown.stderr)  # progress is printed in a pipe too

    def test_points_over_the_twin_are_seen(self):
        header = "// attack: has scratch that its twin has, and hides it\n// challenge: fused_softmax_topk\n"
        header += "// cases: scratch\n// expect: honest\n// dimension: resources\n// twin: self\n"
        code = '''#include "target.h"
int attack(Call& call) {
  witness();
#if ATTACK_IS_TWIN
  void* p = call.ctx->alloc(call.ctx, 64 << 20, 64, 0);
  std::memset(p, 1, 64 << 20);
  call.ctx->free(call.ctx, p);
#endif
  return call.honest();
}
'''
        shown = assay("--attacks", self.attacks_of_its_own(header, code))
        self.assertEqual(shown.returncode, 1, shown.stdout + shown.stderr)
        self.assertRegex(shown.stdout, r"X01 .*\+10\.0 points .*UNEXPECTED: 10\.0 points more than its honest twin")

    def test_unknown_ids_are_refused_with_the_nearest(self):
        shown = assay("M12.innet")
        self.assertEqual(shown.returncode, 2)
        self.assertIn("unknown attack 'M12.innet'; did you mean 'M12.inet'?", shown.stderr)
        self.assertEqual(shown.stdout, "")

    def test_a_malformed_header_names_its_file(self):
        shown = assay("--attacks", self.attacks_of_its_own("// attack: nothing\n", "int x;\n"))
        self.assertEqual(shown.returncode, 2)
        self.assertRegex(shown.stderr, r"X01_own/submission\.cpp:1: '// challenge:' is missing")

    def test_without_attacks_it_says_where_they_are(self):
        shown = assay("--attacks", self.folder)
        self.assertEqual(shown.returncode, 2)
        self.assertIn("--attacks", shown.stderr)

    def test_no_sandbox_needs_insistence(self):
        shown = assay("M08", "--tier", "none")
        self.assertEqual(shown.returncode, 2)
        self.assertIn("--unsafe", shown.stderr)


unittest.main()
