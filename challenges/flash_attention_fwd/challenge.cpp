#include <fmt/format.h>

#include "trusted.h"

namespace assay::flash_attention_fwd {

using attention::Problem;
using attention::problem_of;
using attention::span_of;

namespace {

Entry entry_of(const Problem& problem) {
  if (problem.packed()) return Entry::varlen;
  if (problem.bias) return Entry::bias;
  if (problem.fp8) return Entry::fp8;
  return problem.has_extra() ? Entry::extra : Entry::plain;
}

}  // namespace

class FlashAttentionForward final : public Challenge {
 public:
  CasePlan plan(const CaseSpec& spec) const override {
    const Problem problem = problem_of(spec);
    const fa_params p = problem.flat().p;
    const Dtype type = attention::dtype_of(problem);
    const Dtype input = problem.fp8 ? Dtype::u8 : type;
    const fa_bias& bias = problem.bias_shape;
    const bool packed = problem.packed();
    CasePlan plan;
    plan.set_params(Params{attention::told_params(spec, problem), problem.softcap,
                           entry_of(problem), packed ? p.Nq : 0, packed ? p.Nk : 0, bias});
    plan.aligned = spec.group == CaseGroup::timed;
    plan.buffers = {
        {"q", input, {span_of(p.sq, p.B, p.Hq, p.Nq, p.D)}},
        {"k", input, {span_of(p.sk, p.B, p.Hkv, p.Nk, p.D)}},
        {"v", input, {span_of(p.sv, p.B, p.Hkv, p.Nk, p.Dv)}},
        {"alibi", Dtype::f32, {p.Hq}, Role::input, 0, !problem.alibi},
        {"sink", Dtype::f32, {p.Hq}, Role::input, 0, !problem.sink},
        {"kv_len", Dtype::i64, {p.B}, Role::input, 0, problem.kv_len.empty()},
        {"cu_q", Dtype::i64, {problem.p.B + 1}, Role::input, 0, !packed},
        {"cu_k", Dtype::i64, {problem.p.B + 1}, Role::input, 0, !packed},
        {"bias", Dtype::f32, {bias.B, bias.Hq, bias.Nq, bias.Nk}, Role::input, 0, !problem.bias},
        {"scales", Dtype::f32, {3}, Role::input, 0, !problem.fp8},
        {"o", type, {span_of(p.so, p.B, p.Hq, p.Nq, p.Dv)}, Role::output},
        {"lse",
         Dtype::f32,
         {p.B, p.Hq, p.Nq},
         Role::output,
         0,
         spec.params.value("null_lse", false)},
        {"secret", Dtype::u64, {1}, Role::input, 1}};
    plan.keep_on_host({"secret"});
    plan.pass_as_null(spec.params.value("null", std::vector<std::string>{}));
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, std::uint64_t seed,
            BufferViews buffers) const override {
    generate_inputs(spec, problem_of(spec), seed, buffers);
  }

  std::unique_ptr<Reference> reference(const CaseSpec& spec, const CasePlan&,
                                       BufferViews buffers) const override {
    if (spec.expect_status != ASSAY_OK) return std::make_unique<ForwardReference>();
    return make_reference(spec, problem_of(spec), buffers);
  }

  CheckResult check(const CaseSpec& spec, const CasePlan&, const Reference& reference,
                    BufferViews buffers, const CallbackServer*) const override {
    return check_outputs(problem_of(spec), static_cast<const ForwardReference&>(reference),
                         buffers);
  }

  std::optional<LeastWork> least_work(const CaseSpec& spec, const CasePlan& plan) const override {
    const Problem problem = problem_of(spec);
    return LeastWork{
        plan.bytes_of({"q", "k", "v", "o", "lse"}),
        2.0 * static_cast<double>(problem.p.D + problem.p.Dv) * attention::visible_pairs(problem)};
  }

  std::string shape(const CaseSpec& spec) const override {
    return attention::shape_text(problem_of(spec));
  }
};

}  // namespace assay::flash_attention_fwd

ASSAY_CHALLENGE(flash_attention_fwd, flash_attention_fwd::FlashAttentionForward)
