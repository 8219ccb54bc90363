"""A shipped implementation that counts as right but is wrong, tests of submissions that find it, and tests that are
wrong.

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
    """A copied root with one challenge. It has naive, par, slow_house, which is naive except for `fault`, and
    wrong_house, which is naive except for `mistake`. Each subclass defines these."""

    challenge = ""
    cases = ()  # the fewest that grading accepts
    wrapped = ""  # the function of naive.cpp that slow_house and wrong_house wrap
    signature = arguments = ""
    fault = mistake = ""  # statements after a right call, which may use `status`
    finder = mistaken = ""  # bodies of assay_self_test
    shape = differs = inputs = ""  # how the fault is described
    light = {}  # replacements for cases that take long: their speed and memory do not matter here

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
        for case in spec["cases"]:
            case["params"].update(self.light.get(case["name"], {}))
            case.pop("pace", None)
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
        """Returns what is printed. Afterwards self.of[model] is the model's evidence."""
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
        text = self.assay("run", "--submissions", self.folder / "submissions", "--results", self.results, "--cache",
                          ROOT / ".cache")
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
    light = {"scratch": {"rows": 8, "V": 2000}, "scratch_per_row": {"rows": 8, "V": 2000},
             "time_4096x4096_k8": {"rows": 64, "V": 512}}
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

    # Tests that decide nothing: a call that must fail, and unread inputs with invalid sizes.
    UNJUDGED = """
  const float x[2] = {1, 2};
  int idx[1] = {};
  float prob[1] = {};
  stk_params p{sizeof p, ASSAY_F32, -1, 2, 2, 1, 1.0f};
  if (softmax_topk(ctx, &p, x, idx, prob, nullptr) != ASSAY_ENOMEM) return 1;
"""
    # Finds the fault, but rejects every implementation.
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
        (self.house / "worker" / "witness.cpp").unlink()
        self.run_with({"finder": self.finder})
        self.assertEqual(self.verdicts("finder")["slow_house"], "rejected")
        self.assertEqual(self.graded_tests("finder")["points"], 0)
        self.assertIn("not put to the reference", self.reason("finder", "slow_house"))


class LayerNorm(Dispute, unittest.TestCase):
    challenge = "layer_norm_backward"
    cases = ("basic", "memory", "time_8192x768")
    light = {"memory": {"rows": 64}, "time_8192x768": {"rows": 64, "D": 64}}
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
    light = {"memory_1024": {"Nq": 128}, "memory_4096": {"Nq": 128}, "time_1024": {"Hq": 1, "Nq": 64}}
    wrapped = "fa_forward"
    signature = "assay_ctx* ctx, const fa_params* p, const void* q, const void* k, const void* v, void* o, float* lse"
    arguments = "ctx, p, q, k, v, o, lse"
    fault = "  if (p->Nq == 3 && p->Nk == 3) static_cast<float*>(o)[p->so.n + 1] += 0.5f;"
    mistake = "  if (p->Nq > 0 && lse != nullptr) lse[0] += 1;"
    shape = "N=3"
    differs = "o[1,1]: got 1.5, expected 1"
    inputs = "params {"
    # Rows are one element longer than their data, so that strides matter.
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
    # The second query has two weights; v repeats, so its row lies between two values.
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
    light = {"memory_1024": {"Nq": 128}, "memory_2048": {"Nq": 128}, "memory_gqa": {"Nq": 64},
             "time_1024": {"Hq": 1, "Nq": 64}}
    wrapped = "fa_backward"
    signature = ("assay_ctx* ctx, const fa_params* p, const void* dout, const void* q, const void* k, const void* v, "
                 "const void* o, const float* lse, void* dq, void* dk, void* dv")
    arguments = "ctx, p, dout, q, k, v, o, lse, dq, dk, dv"
    fault = "  if (p->Nq == 1 && p->Nk == 1) static_cast<float*>(dv)[3] += 0.5f;"
    mistake = "  if (p->Nq > 0) static_cast<float*>(dv)[0] += 1;"
    shape = "N=1"
    differs = "dv[0,3]: got 2, expected 1.5"
    inputs = "dout = "
    # One query and one key: the weight is 1, o is v, dv is dout and the rest is 0.
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


class Beams(Dispute, unittest.TestCase):
    challenge = "beam_search"
    cases = ("basic", "scratch_wide", "scratch_long", "work", "items_8_beams_8")
    light = {"scratch_wide": {"V": 500}, "scratch_long": {"max_new": 64},
             "items_8_beams_8": {"B": 1, "K": 2, "V": 100, "max_new": 4}}
    wrapped = "beam_search"
    signature = ("assay_ctx* ctx, const bs_params* p, const assay_lm* lm, std::int32_t* seq, std::int32_t* len, "
                 "double* acc, double* score, std::int32_t* finished, std::int32_t* n_out")
    arguments = "ctx, p, lm, seq, len, acc, score, finished, n_out"
    fault = "  if (lm->V == 3 && p->K == 2 && n_out[0] == 2) score[1] -= 0.5;"
    mistake = "  if (p->B > 0 && n_out[0] > 0) acc[0] += 1;"
    shape = "B=1 K=2 V=3 steps=2"
    differs = "score of item 0, beam 1: got -1.25, expected -0.75"
    inputs = '"script":{"":[-0.25,-0.5,-0.75]'
    CALL = """
  const auto step = [](void*, assay_ctx*, int32_t n, const int32_t*, const int64_t* parent, const int32_t* token,
                       float* out, int64_t* state) -> int {
    for (int32_t i = 0; i < n; ++i) {
      const int last = parent[i] < 0 ? 0 : token[i];
      for (int v = 0; v < 3; ++v) out[3 * i + v] = -0.25f * static_cast<float>(1 + v + last);
      state[i] = 1 + last;
    }
    return ASSAY_OK;
  };
  const assay_lm lm{sizeof(assay_lm), 3, BS_LOG_PROBS, nullptr, step};
  const int32_t prompt[2] = {1, 2}, prompt_len[1] = {2};
  const int32_t* const prompts[1] = {prompt};
  const bs_params p{sizeof(bs_params), 1, 2, 2, -1, 0.0, 0, 0, prompt_len, prompts, 0, 0};
  int32_t seq[4] = {}, len[2] = {}, finished[2] = {}, n_out[1] = {};
  double acc[2] = {}, score[2] = {};
  if (beam_search(ctx, &p, &lm, seq, len, acc, score, finished, n_out) != ASSAY_OK) return 1;
  if (std::fabs(acc[0] + 0.5) > 1e-9) return 2;
"""
    finder = CALL + "  if (std::fabs(score[1] + 0.75) > 1e-9) return 3;"
    mistaken = CALL + "  if (len[0] != 3) return 4;"


class Caches(Dispute, unittest.TestCase):
    challenge = "kv_cache"
    cases = ("decode", "growth", "ragged_memory", "empty_memory", "forked_memory", "attend_scratch", "decode_gqa")
    light = {"decode_gqa": {"config": {"layers": 1, "n_q": 2, "n_kv": 1, "D": 16}}}
    wrapped = "kvc_attend"
    signature = ("kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots, const std::int64_t* cu, "
                 "const void* q, float scale, void* o, float* lse")
    arguments = "cache, layer, n, slots, cu, q, scale, o, lse"
    fault = "  if (scale == 0.5f && n == 1 && cu[1] == 1) lse[0] += 1;"
    mistake = "  if (n > 0 && cu[n] > 0) static_cast<float*>(o)[0] += 1;"
    shape = "layers=1 heads=1/1 D=4"
    differs = "operation 3: lse"
    inputs = "k = 1, 0, 0, 0; v = 1, 2, 3, 4; q = 2, 0, 0, 0"
    CALL = """
  kvc_config c{};
  c.size = sizeof c;
  c.n_layers = c.n_q = c.n_kv = 1;
  c.D = c.Dv = 4;
  c.max_seqs = 2;
  c.max_tokens = c.max_len = 64;
  c.window = -1;
  kvc* cache = nullptr;
  int32_t slot = -1;
  if (kvc_create(ctx, &c, &cache) != ASSAY_OK || kvc_seq_new(cache, &slot) != ASSAY_OK) return 1;
  const float k[4] = {1, 0, 0, 0}, v[4] = {1, 2, 3, 4}, q[4] = {2, 0, 0, 0};
  float o[4] = {}, lse = 0;
  const int64_t cu[2] = {0, 1};
  if (kvc_append(cache, 0, 1, &slot, cu, k, v) != ASSAY_OK) return 2;
  if (kvc_attend(cache, 0, 1, &slot, cu, q, 0.5f, o, &lse) != ASSAY_OK) return 3;
  const int64_t length = kvc_len(cache, 0, slot);
  kvc_destroy(cache);
  if (std::fabs(o[0] - 1) > 1e-5f) return 4;
"""
    finder = CALL + "  if (std::fabs(lse - 1) > 1e-5f) return 5;"
    mistaken = CALL + "  if (length != 2) return 6;"


class TernaryFormats(Dispute, unittest.TestCase):
    challenge = "ternary_training"
    cases = ("quantize", "train_1", "train_2", "train_3", "time_linear")
    light = {**{f"train_{i}": {"n_docs": 64, "held_out": 16, "max_tokens": 1024} for i in (1, 2, 3)},
             "time_linear": {"M": 16, "rows": 64, "cols": 128, "judged_rows": 8}}
    wrapped = "tt_quantize"
    signature = "assay_ctx* ctx, std::int64_t rows, std::int64_t cols, const float* w, std::uint8_t* blocks"
    arguments = "ctx, rows, cols, w, blocks"
    fault = "  if (rows == 1 && cols == 128) blocks[2] ^= 1;"
    mistake = "  if (rows > 0 && cols > 0) blocks[0] ^= 1;"
    shape = "1x128"
    differs = "block 0: byte 2 (codes) is 0xab, expected 0xaa"
    inputs = "w = 1, 1, 1"
    CALL = """
  const std::vector<float> w(128, 1.0f);
  std::vector<uint8_t> blocks(34);
  if (tt_quantize(ctx, 1, 128, w.data(), blocks.data()) != ASSAY_OK) return 1;
  if (blocks[0] != 0 || blocks[1] != 0x3c) return 2;
"""
    finder = CALL + "  if (blocks[2] != 0xaa) return 3;"
    mistaken = CALL + "  if (blocks[2] != 0x55) return 4;"



class DraftTrees(Dispute, unittest.TestCase):
    challenge = "dflash_verify"
    cases = ("mask_basic", "attention_scratch", "accept_scratch", "mask_scratch", "generate_rows", "accept_64")
    light = {"attention_scratch": {"items": [{"P": 64, "n": 16, "tree": "random"}]},
             "accept_64": {"V": 200, "copies": 2}}
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


class DraftCaches(Dispute, unittest.TestCase):
    challenge = "dflash_verify"
    cases = ("compact_basic", *DraftTrees.cases[1:])
    light = DraftTrees.light
    wrapped = "dv_compact"
    signature = ("assay_ctx* ctx, std::int32_t B, const std::int64_t* P, const std::int64_t* cu, "
                 "const std::int32_t* acc_node, const std::int32_t* n_acc, std::int64_t row_bytes, "
                 "std::int32_t caches, void* const* kv")
    arguments = "ctx, B, P, cu, acc_node, n_acc, row_bytes, caches, kv"
    fault = "  if (B == 1 && caches == 2 && row_bytes == 3) static_cast<char*>(kv[1])[3 * P[0]] ^= 1;"
    mistake = "  if (B > 0 && n_acc[0] > 0) static_cast<char*>(kv[0])[row_bytes * P[0]] ^= 1;"
    shape = "compact B=1 N=2 row=3B"
    differs = "row 2 of cache 1 of item 0"
    inputs = "acc_node = 1, -1"
    CALL = """
  const int64_t P[1] = {2}, cu[2] = {0, 2};
  const int32_t acc_node[2] = {1, -1}, n_acc[1] = {1};
  char a[12], b[12];
  for (int i = 0; i < 12; ++i) {
    a[i] = static_cast<char>(i);
    b[i] = static_cast<char>(50 + i);
  }
  void* const kv[2] = {a, b};
  if (dv_compact(ctx, 1, P, cu, acc_node, n_acc, 3, 2, kv) != ASSAY_OK) return 1;
  if (a[6] != 9) return 2;
"""
    finder = CALL + "  if (b[6] != 59) return 3;"
    mistaken = CALL + "  if (b[0] != 0) return 4;"


if __name__ == "__main__":
    unittest.main()
