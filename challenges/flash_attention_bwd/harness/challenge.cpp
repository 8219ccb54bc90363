#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "trusted.h"

namespace assay::flash_attention_bwd {

using attention::Problem;
using attention::problem_of;
using attention::span_of;

namespace {

Entry entry_of(const CaseSpec& spec, const Problem& problem) {
  if (is_chained(spec)) return Entry::chained;
  if (problem.packed()) return Entry::varlen;
  if (problem.bias) return Entry::bias;
  return problem.has_extra() || spec.params.value("dlse", false) ? Entry::extra : Entry::plain;
}

// Whether o and lse match the inputs, to the precision of a half-width forward pass.
bool near_forward(const Problem& problem, std::span<const std::byte> o,
                  std::span<const std::byte> lse, BufferViews exact) {
  constexpr double kNear = 0.02;
  const fa_params p = problem.flat().p;
  const auto near = [](double a, double b) {
    return a == b || std::abs(a - b) <= kNear * (1 + std::abs(b));
  };
  for (std::int64_t row = 0; row < p.B * p.Hq * p.Nq; ++row) {
    float given = 0;
    std::memcpy(&given, lse.data() + row * 4, 4);
    if (!near(given, exact[kLse].as<float>()[row])) return false;
    const std::int64_t at =
        row / (p.Hq * p.Nq) * p.so.b + row / p.Nq % p.Hq * p.so.h + row % p.Nq * p.so.n;
    for (std::int64_t d = 0; d < p.Dv; ++d) {
      if (!near(attention::widen(p.dtype, o.data(), at + d),
                attention::widen(p.dtype, exact[kO].data, at + d)))
        return false;
    }
  }
  return true;
}

}  // namespace

class FlashAttentionBackward final : public Challenge {
 public:
  std::optional<DrawnCase> drawn(const nlohmann::json& draw) const override {
    constexpr std::int64_t kMostProducts = 1 << 23;
    return attention::drawn_problem(draw, kMostProducts);
  }

  std::optional<nlohmann::json> recorded(const RecordedCall& call) const override {
    const auto params = call.params_as<Params>();
    if (!params || params->calls != 1) return std::nullopt;
    const Entry entry = params->entry;
    attention::RecordedForm form{.p = params->p};
    if (entry == Entry::extra) {
      form.extra = true;
      form.softcap = params->softcap;
      form.alibi = kAlibi;
      form.sink = kSink;
      form.kv_len = kKvLen;
    } else if (entry == Entry::varlen) {
      form.cu_q = kCuQ;
      form.cu_k = kCuK;
      form.total_q = params->total_q;
      form.total_k = params->total_k;
    } else if (entry == Entry::bias) {
      form.bias = params->bias;
    } else if (entry != Entry::plain) {
      return std::nullopt;
    }
    auto found = attention::recorded_problem(call, form);
    for (const Handle handle : {kDout, kQ, kK, kV, kO, kLse, kDq, kDk, kDv}) {
      if (call.find(handle) == nullptr) return std::nullopt;
    }
    if (!found) return std::nullopt;
    const bool packed = entry == Entry::varlen;
    const std::int64_t queries = packed ? form.total_q : form.p.Nq,
                       keys = packed ? form.total_k : form.p.Nk;
    if (queries > 0 && call.find(kDq)->null) return std::nullopt;
    if (keys > 0 && (call.find(kDk)->null || call.find(kDv)->null)) return std::nullopt;
    if (entry == Entry::extra) {
      const RecordedCall::Array* const dlse = call.find(kDlse);
      (*found)["dlse"] = dlse != nullptr && !dlse->null;
    }
    if (entry == Entry::bias) {
      const RecordedCall::Array* const dbias = call.find(kDbias);
      (*found)["no_dbias"] = dbias == nullptr || dbias->null;
    }
    CaseSpec spec;
    spec.params = *found;
    // For example, a call of fa_backward_extra without extras is not a case.
    if (entry_of(spec, problem_of(spec)) != entry) return std::nullopt;
    return found;
  }

  // Tests compute o and lse by a forward pass of their own. The task promises exact values up to
  // one rounding, so the case gets those, unless the tests' values clearly differ.
  bool adopt(const CaseSpec& spec, const CasePlan&, BufferViews buffers) const override {
    const Problem problem = problem_of(spec);
    const fa_params p = problem.flat().p;
    for (const Handle handle : {kAlibi, kSink, kBias, kDlse}) {
      if (!attention::finite_values(buffers[handle])) return false;
    }
    if (!attention::finite_rows(problem, p.sq, p.Hq, p.Nq, p.D, buffers[kQ]) ||
        !attention::finite_rows(problem, p.sk, p.Hkv, p.Nk, p.D, buffers[kK]) ||
        !attention::finite_rows(problem, p.sv, p.Hkv, p.Nk, p.Dv, buffers[kV]) ||
        !attention::finite_rows(problem, p.so, p.Hq, p.Nq, p.Dv, buffers[kDout]))
      return false;
    const auto copy = [](const BufferView& view) {
      const auto bytes = view.span<const std::byte>();
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    const std::vector<std::byte> o = copy(buffers[kO]), lse = copy(buffers[kLse]);
    forward(problem, buffers);
    return near_forward(problem, {o.data(), o.size()}, {lse.data(), lse.size()}, buffers);
  }

  CasePlan plan(const CaseSpec& spec) const override {
    const Problem problem = problem_of(spec);
    const fa_params p = problem.flat().p;
    const fa_bias& bias = problem.bias_shape;
    const bool packed = problem.packed(),
               no_dbias = !problem.bias || spec.params.value("no_dbias", false);
    const Role role = is_chained(spec) ? Role::output : Role::input;  // of o and lse
    const bool dlse = spec.params.value("dlse", false);
    const Dtype type = attention::dtype_of(problem);
    const std::int64_t queries = span_of(p.sq, p.B, p.Hq, p.Nq, p.D);
    const std::int64_t keys = span_of(p.sk, p.B, p.Hkv, p.Nk, p.D);
    const std::int64_t values = span_of(p.sv, p.B, p.Hkv, p.Nk, p.Dv);
    const std::int64_t outputs = span_of(p.so, p.B, p.Hq, p.Nq, p.Dv);
    const auto pieces = [&](const assay_stride& s, std::int64_t H, std::int64_t N, std::int64_t D) {
      return attention::pieces_of(problem, s, H, N, D);
    };
    CasePlan plan;
    plan.set_params(Params{attention::told_params(spec, problem), problem.softcap,
                           entry_of(spec, problem), spec.params.value("calls", 1),
                           packed ? p.Nq : 0, packed ? p.Nk : 0, bias});
    plan.aligned = spec.group == CaseGroup::timed;
    const std::vector<std::int64_t> heads{p.Hq}, rows{p.B, p.Hq, p.Nq}, ends{problem.p.B + 1},
        bias_shape{bias.B, bias.Hq, bias.Nq, bias.Nk};
    plan.add(
        kQ,
        {.name = "q", .dtype = type, .shape = {queries}, .pieces = pieces(p.sq, p.Hq, p.Nq, p.D)});
    plan.add(
        kK,
        {.name = "k", .dtype = type, .shape = {keys}, .pieces = pieces(p.sk, p.Hkv, p.Nk, p.D)});
    plan.add(
        kV,
        {.name = "v", .dtype = type, .shape = {values}, .pieces = pieces(p.sv, p.Hkv, p.Nk, p.Dv)});
    plan.add(kAlibi,
             {.name = "alibi", .dtype = Dtype::f32, .shape = heads, .null = !problem.alibi});
    plan.add(kSink, {.name = "sink", .dtype = Dtype::f32, .shape = heads, .null = !problem.sink});
    plan.add(
        kKvLen,
        {.name = "kv_len", .dtype = Dtype::i64, .shape = {p.B}, .null = problem.kv_len.empty()});
    plan.add(kCuQ, {.name = "cu_q", .dtype = Dtype::i64, .shape = ends, .null = !packed});
    plan.add(kCuK, {.name = "cu_k", .dtype = Dtype::i64, .shape = ends, .null = !packed});
    plan.add(kBias,
             {.name = "bias", .dtype = Dtype::f32, .shape = bias_shape, .null = !problem.bias});
    plan.add(kDlse, {.name = "dlse", .dtype = Dtype::f32, .shape = rows, .null = !dlse});
    plan.add(kDout, {.name = "dout",
                     .dtype = type,
                     .shape = {outputs},
                     .pieces = pieces(p.so, p.Hq, p.Nq, p.Dv)});
    plan.add(kO, {.name = "o",
                  .dtype = type,
                  .shape = {outputs},
                  .role = role,
                  .pieces = pieces(p.so, p.Hq, p.Nq, p.Dv)});
    plan.add(kLse, {.name = "lse", .dtype = Dtype::f32, .shape = rows, .role = role});
    plan.add(kDq, {.name = "dq",
                   .dtype = type,
                   .shape = {queries},
                   .role = Role::output,
                   .pieces = pieces(p.sq, p.Hq, p.Nq, p.D)});
    plan.add(kDk, {.name = "dk",
                   .dtype = type,
                   .shape = {keys},
                   .role = Role::output,
                   .pieces = pieces(p.sk, p.Hkv, p.Nk, p.D)});
    plan.add(kDv, {.name = "dv",
                   .dtype = type,
                   .shape = {values},
                   .role = Role::output,
                   .pieces = pieces(p.sv, p.Hkv, p.Nk, p.Dv)});
    plan.add(kDbias, {.name = "dbias",
                      .dtype = Dtype::f32,
                      .shape = bias_shape,
                      .role = Role::output,
                      .null = no_dbias});
    plan.pass_as_null(spec.params.value("null", std::vector<std::string>{}));
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    generate_inputs(spec, problem_of(spec), seeds.inputs, buffers);
  }

  std::unique_ptr<Reference> reference(const CaseSpec& spec, const CasePlan&,
                                       BufferViews buffers) const override {
    if (spec.expect_status != ASSAY_OK) return std::make_unique<BackwardReference>();
    return make_reference(problem_of(spec), is_chained(spec), buffers);
  }

  CheckResult check(const CaseSpec& spec, const CasePlan&, const Reference& reference,
                    BufferViews buffers, const CallbackServer*) const override {
    if (spec.expect_status != ASSAY_OK) return {};
    return check_outputs(problem_of(spec), static_cast<const BackwardReference&>(reference),
                         buffers);
  }

  // Five products: the scores, their gradient, and the gradients of q, k and v.
  std::optional<LeastWork> least_work(const CaseSpec& spec, const CasePlan& plan) const override {
    const Problem problem = problem_of(spec);
    return LeastWork{.bytes = plan.bytes_of({"q", "k", "v", "o", "dout", "lse", "dq", "dk", "dv"}),
                     .flops = 2.0 * static_cast<double>(3 * problem.p.D + 2 * problem.p.Dv) *
                              attention::visible_pairs(problem)};
  }

  std::string shape(const CaseSpec& spec) const override {
    return attention::shape_text(problem_of(spec));
  }
};

}  // namespace assay::flash_attention_bwd

ASSAY_CHALLENGE(flash_attention_bwd, flash_attention_bwd::FlashAttentionBackward)
