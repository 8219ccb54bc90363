#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

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
  std::optional<DrawnCase> drawn(const nlohmann::json& draw) const override {
    constexpr std::int64_t kMostProducts = 1 << 23;
    return attention::drawn_problem(draw, kMostProducts);
  }

  std::optional<nlohmann::json> recorded(const RecordedCall& call) const override {
    const auto params = call.params_as<Params>();
    if (!params) return std::nullopt;
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
    } else if (entry != Entry::plain && entry != Entry::fp8) {
      return std::nullopt;
    }
    auto found = attention::recorded_problem(call, form);
    for (const Handle handle : {kQ, kK, kV, kO, kLse}) {
      if (call.find(handle) == nullptr) return std::nullopt;
    }
    if (!found) return std::nullopt;
    if (entry == Entry::fp8) (*found)["fp8"] = true;
    const std::int64_t queries = entry == Entry::varlen ? form.total_q : form.p.Nq;
    if (queries > 0 && call.find(kO)->null) return std::nullopt;
    if (call.find(kLse)->null) (*found)["null_lse"] = true;
    CaseSpec spec;
    spec.params = *found;
    // For example, a call of fa_forward_extra without extras is not a case.
    if (entry_of(problem_of(spec)) != entry) return std::nullopt;
    return found;
  }

  // Masked elements may legally hold anything, but masking is not examined here: all rows must be
  // finite.
  bool adopt(const CaseSpec& spec, const CasePlan&, BufferViews buffers) const override {
    const Problem problem = problem_of(spec);
    const fa_params p = problem.flat().p;
    for (const Handle handle : {kAlibi, kSink, kBias, kScales}) {
      if (!attention::finite_values(buffers[handle])) return false;
    }
    if (problem.fp8) {
      const auto is_nan = [](std::uint8_t x) { return (x & 0x7f) == 0x7f; };
      return std::ranges::all_of(std::initializer_list<Handle>{kQ, kK, kV}, [&](Handle handle) {
        return std::ranges::none_of(buffers[handle].span<std::uint8_t>(), is_nan);
      });
    }
    return attention::finite_rows(problem, p.sq, p.Hq, p.Nq, p.D, buffers[kQ]) &&
           attention::finite_rows(problem, p.sk, p.Hkv, p.Nk, p.D, buffers[kK]) &&
           attention::finite_rows(problem, p.sv, p.Hkv, p.Nk, p.Dv, buffers[kV]);
  }

  CasePlan plan(const CaseSpec& spec) const override {
    const Problem problem = problem_of(spec);
    const fa_params p = problem.flat().p;
    const Dtype type = attention::dtype_of(problem);
    const Dtype input = problem.fp8 ? Dtype::u8 : type;
    const fa_bias& bias = problem.bias_shape;
    const bool packed = problem.packed(), null_lse = spec.params.value("null_lse", false);
    const std::int64_t queries = span_of(p.sq, p.B, p.Hq, p.Nq, p.D);
    const std::int64_t keys = span_of(p.sk, p.B, p.Hkv, p.Nk, p.D);
    const std::int64_t values = span_of(p.sv, p.B, p.Hkv, p.Nk, p.Dv);
    const std::int64_t outputs = span_of(p.so, p.B, p.Hq, p.Nq, p.Dv);
    const auto pieces = [&](const assay_stride& s, std::int64_t H, std::int64_t N, std::int64_t D) {
      return attention::pieces_of(problem, s, H, N, D);
    };
    CasePlan plan;
    plan.set_params(Params{attention::told_params(spec, problem), problem.softcap,
                           entry_of(problem), packed ? p.Nq : 0, packed ? p.Nk : 0, bias});
    plan.aligned = spec.group == CaseGroup::timed;
    const std::vector<std::int64_t> heads{p.Hq}, rows{p.B, p.Hq, p.Nq}, ends{problem.p.B + 1},
        bias_shape{bias.B, bias.Hq, bias.Nq, bias.Nk};
    plan.add(
        kQ,
        {.name = "q", .dtype = input, .shape = {queries}, .pieces = pieces(p.sq, p.Hq, p.Nq, p.D)});
    plan.add(
        kK,
        {.name = "k", .dtype = input, .shape = {keys}, .pieces = pieces(p.sk, p.Hkv, p.Nk, p.D)});
    plan.add(kV, {.name = "v",
                  .dtype = input,
                  .shape = {values},
                  .pieces = pieces(p.sv, p.Hkv, p.Nk, p.Dv)});
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
    plan.add(kScales, {.name = "scales", .dtype = Dtype::f32, .shape = {3}, .null = !problem.fp8});
    plan.add(kO, {.name = "o",
                  .dtype = type,
                  .shape = {outputs},
                  .role = Role::output,
                  .pieces = pieces(p.so, p.Hq, p.Nq, p.Dv)});
    plan.add(kLse, {.name = "lse",
                    .dtype = Dtype::f32,
                    .shape = rows,
                    .role = Role::output,
                    .null = null_lse});
    plan.add(kSecret,
             {.name = "secret", .dtype = Dtype::u64, .shape = {1}, .phase = 1, .host = true});
    plan.pass_as_null(spec.params.value("null", std::vector<std::string>{}));
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    generate_inputs(spec, problem_of(spec), seeds, buffers);
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
    return LeastWork{.bytes = plan.bytes_of({"q", "k", "v", "o", "lse"}),
                     .flops = 2.0 * static_cast<double>(problem.p.D + problem.p.Dv) *
                              attention::visible_pairs(problem)};
  }

  std::string shape(const CaseSpec& spec) const override {
    return attention::shape_text(problem_of(spec));
  }
};

}  // namespace assay::flash_attention_fwd

ASSAY_CHALLENGE(flash_attention_fwd, flash_attention_fwd::FlashAttentionForward)
