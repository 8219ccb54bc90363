#include <fmt/format.h>

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

}  // namespace

class FlashAttentionBackward final : public Challenge {
 public:
  std::optional<DrawnCase> drawn(const nlohmann::json& draw) const override {
    constexpr std::int64_t kMostProducts = 1 << 23;
    return attention::drawn_problem(draw, kMostProducts);
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

  // Five products: scores, their gradient, and those of q, k and v.
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
