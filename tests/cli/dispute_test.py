"""An implementation that is shipped as right and is wrong; tests of submissions that find it, and tests that are wrong.

Usage: dispute_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ASSAY, ROOT = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))


class Dispute:
    """A root of its own with one challenge. It has naive, par, slow_house, which is naive but for `fault`, and
    wrong_house, which is naive but for `mistake`. Each subclass says what these are."""

    challenge = ""
    cases = ()  # as few as grading wants
    wrapped = ""  # the function of naive.cpp that they wrap
    signature = arguments = ""
    fault = mistake = ""  # statements behind a right call, which may use `status`
    finder = mistaken = ""  # bodies of assay_self_test
    shape = differs = inputs = ""  # what is said of the fault

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-dispute-"))
        self.root, self.results = self.folder / "root", self.folder / "results"
        shutil.copytree(ROOT / "challenges", self.root / "challenges")
        shutil.copytree(ROOT / "include", self.root / "include")
        self.house = self.root / "challenges" / self.challenge
        spec = json.loads((self.house / "spec.json").read_text())
        spec.pop("random", None)
        spec["cases"] = [c for c in spec["cases"] if c["name"] in self.cases]
        spec["capabilities"] = []
        (self.house / "spec.json").write_text(json.dumps(spec))
        shutil.rmtree(self.house / "examples")
        (self.house / "examples").mkdir()
        self.example("wrong_house", f"// fails: {self.cases[0]}", self.mistake)
        self.example("slow_house", f"// slow: {self.cases[0]}", self.fault)

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def example(self, name, first, statements):
        (self.house / "examples" / f"{name}.cpp").write_text(f"""{first}
#define {self.wrapped} naive_{self.wrapped}
#include "naive.cpp"
#undef {self.wrapped}
extern "C" int {self.wrapped}({self.signature}) {{
  const int status = naive_{self.wrapped}({self.arguments});
  if (status != ASSAY_OK) return status;
{statements}
  return status;
}}
""")

    def assay(self, *args):
        done = subprocess.run([ASSAY, "--root", self.root, *map(str, args)], capture_output=True, text=True, timeout=800)
        self.assertEqual(done.returncode, 0, f"{args}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def run_with(self, tests):
        """What is printed. Afterwards self.of[model] is the model's evidence."""
        source = (ROOT / "submissions" / "textbook" / self.challenge / "submission.cpp").read_text()
        for model, body in tests.items():
            folder = self.folder / "submissions" / model / self.challenge
            folder.mkdir(parents=True)
            (folder / "submission.cpp").write_text(source)
            (folder / "test.cpp").write_text(f"""#include <cmath>
#include <cstring>
#include <vector>
#include "abi.h"
extern "C" int assay_self_test(assay_ctx* ctx) {{
{body}
  return 0;
}}
""")
        text = self.assay("run", "--submissions", self.folder / "submissions", "--results", self.results)
        board = json.loads((self.results / "scoreboard.json").read_text())
        found = [json.loads((self.results / e["evidence"]["path"]).read_text()) for e in board["entries"]]
        self.of = {e["cell"]["model"]: e for e in found}
        return text

    def verdicts(self, model):
        return {m["subject"]: m["verdict"] for m in self.of[model]["cell"]["mutants"]}

    def reason(self, model, subject):
        (reason,) = [m["reason"] for m in self.of[model]["cell"]["mutants"] if m["subject"] == subject]
        return reason

    def graded_tests(self, model):
        (dimension,) = [d for d in self.of[model]["score"]["dimensions"] if d["name"] == "tests"]
        return dimension

    def test_who_is_right_keeps_the_points_and_who_is_wrong_loses_them(self):
        text = self.run_with({"finder": self.finder, "mistaken": self.mistaken})
        self.assertEqual(self.verdicts("finder"), {"naive": "accepted", "par": "accepted", "slow_house": "house_fault",
                                                   "wrong_house": "rejected"})
        self.assertEqual(self.graded_tests("finder")["points"], 5)
        fault = self.reason("finder", "slow_house")
        for part in (f"slow_house of {self.challenge} is wrong", self.shape, self.differs, self.inputs):
            self.assertIn(part, fault)
        shown = self.assay("show", "finder", self.challenge, "--results", self.results)
        for place in (text, shown):
            self.assertIn("FAULT OF THE HOUSE", place)
            self.assertIn(f"slow_house of {self.challenge} is wrong", place)
        self.assertIn("a fault of the house: slow_house", self.graded_tests("finder")["why"])

        self.assertEqual(self.verdicts("mistaken")["naive"], "rejected")
        self.assertEqual(self.graded_tests("mistaken")["points"], 0)
        self.assertIn("the reference finds it right on 1 of 1", self.reason("mistaken", "naive"))


class TopK(Dispute, unittest.TestCase):
    challenge = "fused_softmax_topk"
    cases = ("basic", "scratch", "scratch_per_row", "time_4096x4096_k8")
    wrapped = "softmax_topk"
    signature = "assay_ctx* ctx, const stk_params* p, const void* logits, std::int32_t* idx, float* prob, float* lse"
    arguments = "ctx, p, logits, idx, prob, lse"
    fault = "  if (p->V == 5 && p->rows > 0 && p->K > 1) std::swap(idx[0], idx[1]);"
    mistake = "  if (p->rows > 0 && p->K > 0) prob[0] *= 1.5f;"
    shape = "rows=1 V=5 K=2"
    differs = "idx[0,0]: got 1, expected 0"
    inputs = "logits = 1, 1, 0.5, 0, -1"
    CALL = """
  const float x[5] = {1, 1, 0.5f, 0, -1};
  int idx[2] = {};
  float prob[2] = {}, lse = 0;
  const stk_params p{sizeof p, ASSAY_F32, 1, 5, 5, 2, 1.0f};
  if (softmax_topk(ctx, &p, x, idx, prob, &lse) != ASSAY_OK) return 1;
  float sum = 0;
  for (float v : x) sum += std::exp(v);
  if (std::fabs(prob[0] - std::exp(1.0f) / sum) > 1e-5f) return 2;
"""
    finder = CALL + "  if (idx[0] != 0 || idx[1] != 1) return 3;"
    mistaken = CALL + "  if (prob[0] + prob[1] < 0.99f) return 4;"

    # What cannot decide: a call that must fail, and inputs that are not read where sizes are none.
    UNJUDGED = """
  const float x[2] = {1, 2};
  int idx[1] = {};
  float prob[1] = {};
  stk_params p{sizeof p, ASSAY_F32, -1, 2, 2, 1, 1.0f};
  if (softmax_topk(ctx, &p, x, idx, prob, nullptr) != ASSAY_ENOMEM) return 1;
"""
    # Knows the fault and rejects whoever comes.
    GREEDY = finder.replace("return 3;", "return 3;\n  return 9;")
    CRASHES = "  return *static_cast<volatile int*>(nullptr);"

    def test_what_cannot_be_judged_changes_nothing_and_a_known_fault_excuses_no_other_rejection(self):
        self.run_with({"unjudged": self.UNJUDGED, "greedy": self.GREEDY, "crashes": self.CRASHES})
        for model in self.of:
            self.assertEqual(self.graded_tests(model)["points"], 0, model)
        self.assertIn("the reference could not judge it", self.reason("unjudged", "par"))
        self.assertIn("1 with arguments that no array can be read by", self.reason("unjudged", "par"))
        self.assertEqual(self.verdicts("greedy"), {"naive": "rejected", "par": "rejected", "slow_house": "house_fault",
                                                   "wrong_house": "rejected"})
        self.assertIn("the reference could not judge it", self.reason("crashes", "naive"))

    def test_a_challenge_without_a_witness_says_that_nobody_was_asked(self):
        (self.house / "witness.cpp").unlink()
        self.run_with({"finder": self.finder})
        self.assertEqual(self.verdicts("finder")["slow_house"], "rejected")
        self.assertEqual(self.graded_tests("finder")["points"], 0)
        self.assertIn("not put to the reference", self.reason("finder", "slow_house"))


class LayerNorm(Dispute, unittest.TestCase):
    challenge = "layer_norm_backward"
    cases = ("basic", "memory", "time_8192x768")
    wrapped = "ln_backward"
    signature = ("assay_ctx* ctx, const ln_params* p, const void* dy, const void* x, const float* gamma, "
                 "const void* cache, void* dx, float* dgamma, float* dbeta")
    arguments = "ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta"
    fault = "  if (p->D == 5 && p->rows == 3) dbeta[2] += 1;"
    mistake = "  if (p->D > 1 && p->rows > 0) dgamma[1] += 1;"
    shape = "rows=3 D=5"
    differs = "dbeta[0,2]: got 6, expected 5"
    inputs = "gamma = 1, 1, 1, 1, 1"
    CALL = """
  constexpr int kRows = 3, kD = 5;
  std::vector<float> x(kRows * kD), dy(kRows * kD), y(kRows * kD), dx(kRows * kD), gamma(kD, 1), beta(kD), dgamma(kD),
      dbeta(kD);
  for (int i = 0; i < kRows * kD; ++i) {
    x[i] = static_cast<float>(i * i % 7);
    dy[i] = static_cast<float>(i % 4);
  }
  const ln_params p{sizeof p, ASSAY_F32, kRows, kD, 1e-5f};
  std::vector<double> cache(ln_cache_bytes(&p) / 8 + 1);
"""
    FORWARD = """
  if (ln_forward(ctx, &p, x.data(), gamma.data(), beta.data(), y.data(), cache.data()) != ASSAY_OK) return 1;
"""
    finder = CALL + FORWARD + """
  if (ln_backward(ctx, &p, dy.data(), x.data(), gamma.data(), cache.data(), dx.data(), dgamma.data(), dbeta.data()) !=
      ASSAY_OK)
    return 2;
  for (int j = 0; j < kD; ++j) {
    double b = 0, g = 0;
    for (int r = 0; r < kRows; ++r) {
      b += dy[r * kD + j];
      g += dy[r * kD + j] * y[r * kD + j];
    }
    if (std::fabs(dbeta[j] - b) > 1e-4) return 3;
    if (std::fabs(dgamma[j] - g) > 1e-3) return 4;
  }
"""
    mistaken = CALL + FORWARD + "  if (y[0] > -0.5f) return 0;\n  return 5;"


class FlashForward(Dispute, unittest.TestCase):
    challenge = "flash_attention_fwd"
    cases = ("causal_64", "memory_1024", "memory_4096", "time_1024")
    wrapped = "fa_forward"
    signature = "assay_ctx* ctx, const fa_params* p, const void* q, const void* k, const void* v, void* o, float* lse"
    arguments = "ctx, p, q, k, v, o, lse"
    fault = "  if (p->Nq == 3 && p->Nk == 3) static_cast<float*>(o)[p->so.n + 1] += 0.5f;"
    mistake = "  if (p->Nq > 0 && lse != nullptr) lse[0] += 1;"
    shape = "N=3"
    differs = "o[1,1]: got 1.5, expected 1"
    inputs = "params {"
    # Rows lie one element apart from those of the next, so that strides matter.
    CALL = """
  constexpr int N = 3, D = 32, S = D + 1;
  std::vector<float> q(N * S), k(N * S), v(N * S), o(N * S), lse(N);
  for (int i = 0; i < N * S; ++i) {
    q[i] = 0.25f * static_cast<float>(i % 5);
    k[i] = 0.125f * static_cast<float>(i % 7);
    v[i] = static_cast<float>(i % 3);
  }
  const assay_stride s{N * S, N * S, S};
  const fa_params p{sizeof p, ASSAY_F32, 1, 1, 1, N, N, D, D, s, s, s, s, 0.1f, 1, -1, 0};
  if (fa_forward(ctx, &p, q.data(), k.data(), v.data(), o.data(), lse.data()) != ASSAY_OK) return 1;
  float first = 0;
  for (int d = 0; d < D; ++d) first += 0.1f * q[d] * k[d];
  if (std::fabs(lse[0] - first) > 1e-3f) return 2;
"""
    # The second query has two weights; v repeats, so that its row lies between two values.
    finder = CALL + """
  float score[2] = {}, sum = 0, expected = 0;
  for (int j = 0; j < 2; ++j) {
    for (int d = 0; d < D; ++d) score[j] += 0.1f * q[S + d] * k[j * S + d];
    sum += std::exp(score[j]);
  }
  for (int d = 0; d < D; ++d) {
    expected = (std::exp(score[0]) * v[d] + std::exp(score[1]) * v[S + d]) / sum;
    if (std::fabs(o[S + d] - expected) > 1e-3f) return 3;
  }
"""
    mistaken = CALL + "  return o[S] > 100 ? 0 : 4;"


class FlashBackward(Dispute, unittest.TestCase):
    challenge = "flash_attention_bwd"
    cases = ("causal_64", "memory_1024", "memory_2048", "memory_gqa", "time_1024")
    wrapped = "fa_backward"
    signature = ("assay_ctx* ctx, const fa_params* p, const void* dout, const void* q, const void* k, const void* v, "
                 "const void* o, const float* lse, void* dq, void* dk, void* dv")
    arguments = "ctx, p, dout, q, k, v, o, lse, dq, dk, dv"
    fault = "  if (p->Nq == 1 && p->Nk == 1) static_cast<float*>(dv)[3] += 0.5f;"
    mistake = "  if (p->Nq > 0) static_cast<float*>(dv)[0] += 1;"
    shape = "N=1"
    differs = "dv[0,3]: got 2, expected 1.5"
    inputs = "dout = "
    # One query and one key: its weight is 1, o is v, dv is dout and the rest is 0.
    CALL = """
  constexpr int D = 32;
  std::vector<float> dout(D), q(D), k(D), v(D), dq(D), dk(D), dv(D);
  float lse = 0;
  for (int d = 0; d < D; ++d) {
    dout[d] = 0.5f * static_cast<float>(d % 5);
    q[d] = 0.25f * static_cast<float>(d % 3);
    k[d] = 0.125f * static_cast<float>(d % 7);
    v[d] = static_cast<float>(d % 4);
    lse += 0.1f * q[d] * k[d];
  }
  const assay_stride s{D, D, D};
  const fa_params p{sizeof p, ASSAY_F32, 1, 1, 1, 1, 1, D, D, s, s, s, s, 0.1f, 1, -1, 0};
  if (fa_backward(ctx, &p, dout.data(), q.data(), k.data(), v.data(), v.data(), &lse, dq.data(), dk.data(),
                  dv.data()) != ASSAY_OK)
    return 1;
"""
    finder = CALL + """
  for (int d = 0; d < D; ++d) {
    if (std::fabs(dv[d] - dout[d]) > 1e-4f) return 2;
  }
"""
    mistaken = CALL + "  return std::fabs(dq[0]) > 0.1f ? 0 : 3;"


class DraftTrees(Dispute, unittest.TestCase):
    challenge = "dflash_verify"
    cases = ("mask_basic", "attention_scratch", "accept_scratch", "mask_scratch", "generate_rows", "accept_64")
    wrapped = "dv_mask"
    signature = ("assay_ctx* ctx, std::int32_t B, const std::int64_t* P, const std::int64_t* cu, "
                 "const std::int32_t* parent, std::int64_t ldm, std::uint64_t* bits, std::int32_t* depth, "
                 "std::int64_t* pos")
    arguments = "ctx, B, P, cu, parent, ldm, bits, depth, pos"
    fault = "  if (B == 1 && cu[1] == 3) depth[2] += 1;"
    mistake = "  if (B > 0 && cu[1] > 1) pos[1] += 1;"
    shape = "mask B=1 N=3 P=4"
    differs = "depth"
    inputs = "parent = -1, 0, 0"
    CALL = """
  const int64_t P[1] = {4}, cu[2] = {0, 3};
  const int32_t parent[3] = {-1, 0, 0};
  uint64_t bits[3] = {};
  int32_t depth[3] = {};
  int64_t pos[3] = {};
  if (dv_mask(ctx, 1, P, cu, parent, 1, bits, depth, pos) != ASSAY_OK) return 1;
  if (pos[1] != 5) return 2;
"""
    finder = CALL + "  if (depth[2] != 2) return 3;"
    mistaken = CALL + "  if (bits[2] != 7) return 4;"


if __name__ == "__main__":
    unittest.main()
