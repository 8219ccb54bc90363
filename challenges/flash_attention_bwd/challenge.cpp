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
    CasePlan plan;
    plan.set_params(Params{attention::told_params(spec, problem), problem.softcap,
                           entry_of(spec, problem), spec.params.value("calls", 1),
                           packed ? p.Nq : 0, packed ? p.Nk : 0, bias});
    plan.aligned = spec.group == CaseGroup::timed;
    plan.buffers = {
        {"q", type, {queries}},
        {"k", type, {keys}},
        {"v", type, {values}},
        {"alibi", Dtype::f32, {p.Hq}, Role::input, 0, !problem.alibi},
        {"sink", Dtype::f32, {p.Hq}, Role::input, 0, !problem.sink},
        {"kv_len", Dtype::i64, {p.B}, Role::input, 0, problem.kv_len.empty()},
        {"cu_q", Dtype::i64, {problem.p.B + 1}, Role::input, 0, !packed},
        {"cu_k", Dtype::i64, {problem.p.B + 1}, Role::input, 0, !packed},
        {"bias", Dtype::f32, {bias.B, bias.Hq, bias.Nq, bias.Nk}, Role::input, 0, !problem.bias},
        {"dlse", Dtype::f32, {p.B, p.Hq, p.Nq}, Role::input, 0, !dlse},
        {"dout", type, {outputs}},
        {"o", type, {outputs}, role},
        {"lse", Dtype::f32, {p.B, p.Hq, p.Nq}, role},
        {"dq", type, {queries}, Role::output},
        {"dk", type, {keys}, Role::output},
        {"dv", type, {values}, Role::output},
        {"dbias", Dtype::f32, {bias.B, bias.Hq, bias.Nq, bias.Nk}, Role::output, 0, no_dbias}};
    plan.pass_as_null(spec.params.value("null", std::vector<std::string>{}));
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, std::uint64_t seed,
            BufferViews buffers) const override {
    generate_inputs(spec, problem_of(spec), seed, buffers);
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
    return LeastWork{plan.bytes_of({"q", "k", "v", "o", "dout", "lse", "dq", "dk", "dv"}),
                     2.0 * static_cast<double>(3 * problem.p.D + 2 * problem.p.Dv) *
                         attention::visible_pairs(problem)};
  }

  std::string shape(const CaseSpec& spec) const override {
    return attention::shape_text(problem_of(spec));
  }
};

}  // namespace assay::flash_attention_bwd

ASSAY_CHALLENGE(flash_attention_bwd, flash_attention_bwd::FlashAttentionBackward)
