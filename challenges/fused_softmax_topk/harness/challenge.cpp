#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/error.h"
#include "assay/size.h"
#include "shared/recorded.h"
#include "trusted.h"

namespace assay::fused_softmax_topk {
namespace {

Entry entry_named(const std::string& name) {
  if (name == "prob") return kTopK;
  if (name == "logprob") return kLogTopK;
  if (name == "top_p") return kTopP;
  throw Error(fmt::format("fused_softmax_topk: unknown entry '{}'", name));
}

std::optional<nlohmann::json> recorded_params(const RecordedCall& call) {
  constexpr std::int64_t kMostElements = 1 << 25;
  const auto params = call.params_as<Params>();
  if (!params || call.entry < kTopK || call.entry > kTopP) return std::nullopt;
  const stk_params& p = params->p;
  const auto within = [](std::int64_t n) { return n >= 0 && n <= kMostElements; };
  const bool sized = p.size == sizeof(stk_params) && within(p.rows) && within(p.V) && p.ld >= p.V &&
                     within(p.ld) && within(p.K) &&
                     p.rows * std::max<std::int64_t>(p.ld, p.K) <= kMostElements;
  if (!sized || (p.dtype != ASSAY_F32 && p.dtype != ASSAY_BF16)) return std::nullopt;
  if (!(p.temperature > 0) || !std::isfinite(p.temperature)) return std::nullopt;
  if (call.entry == kTopP && !(params->top_p > 0 && params->top_p <= 1)) return std::nullopt;
  const bool complete = has(call, kLogits, p.rows * p.V) && has(call, kIdx, p.rows * p.K) &&
                        has(call, kProb, p.rows * p.K) &&
                        (call.entry != kTopP || has(call, kCount, p.rows));
  if (!complete || call.find(kLse) == nullptr) return std::nullopt;
  constexpr const char* kEntries[] = {"prob", "logprob", "top_p"};
  nlohmann::json found{{"rows", p.rows},
                       {"V", p.V},
                       {"pad", p.ld - p.V},
                       {"K", p.K},
                       {"dtype", p.dtype == ASSAY_F32 ? "f32" : "bf16"},
                       {"temperature", p.temperature},
                       {"entry", kEntries[call.entry]},
                       {"null_lse", call.find(kLse)->null && p.rows > 0}};
  if (call.entry == kTopP) found["top_p"] = params->top_p;
  return found;
}

}  // namespace

Shape shape_of(const CaseSpec& spec) {
  const auto& j = spec.params;
  Shape s;
  s.rows = j.at("rows");
  s.V = j.at("V");
  s.ld = s.V + j.value("pad", std::int64_t{0});
  s.K = j.at("K");
  s.dtype = j.value("dtype", "f32") == "bf16" ? ASSAY_BF16 : ASSAY_F32;
  s.temperature = j.value("temperature", 1.0f);
  s.entry = entry_named(j.value("entry", "prob"));
  s.top_p = j.value("top_p", 0.0f);
  s.null_lse = j.value("null_lse", false);
  return s;
}

const float* row_values(const Shape& s, const void* logits, std::int64_t row,
                        std::vector<float>& scratch) {
  if (s.dtype == ASSAY_F32) return static_cast<const float*>(logits) + row * s.ld;
  const auto* x = static_cast<const std::uint16_t*>(logits) + row * s.ld;
  scratch.resize(to_size(s.V));
  for (std::int64_t j = 0; j < s.V; ++j) scratch[to_size(j)] = bf16_to_float(x[j]);
  return scratch.data();
}

class FusedSoftmaxTopK final : public Challenge {
 public:
  std::optional<DrawnCase> drawn(const nlohmann::json& draw) const override {
    DrawnCase c{draw};
    const nlohmann::json wrong = c.params.at("invalid");
    c.params.erase("invalid");
    // More logits than a drawn case should have.
    constexpr std::int64_t kMostLogits = 1 << 20;
    const std::int64_t rows = c.params.at("rows"), V = c.params.at("V"), K = c.params.at("K");
    if (rows * std::max(V, K) > kMostLogits) return std::nullopt;
    // Rows can only be far apart if there are several; each takes a page.
    if (c.params.at("pad") > kMostPadding && (rows < 2 || rows > 80 || V < 1)) return std::nullopt;
    if (c.params.at("entry") != "top_p") c.params.erase("top_p");
    if (wrong.empty()) return c;
    // An empty array may be NULL, and a width of -1 is only an error if it is below V.
    const std::string null = wrong.value("null", "");
    if (rows * (null == "logits" ? V : null.empty() ? 1 : K) == 0) return std::nullopt;
    if (null.empty()) {
      c.params["override"] = wrong;
    } else {
      c.params["null"] = {null};
    }
    c.expect_status = ASSAY_EINVAL;
    return c;
  }

  std::optional<nlohmann::json> recorded(const RecordedCall& call) const override {
    return recorded_params(call);
  }

  CasePlan plan(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    CasePlan plan;
    plan.entry = s.entry;
    Params params;
    params.p = {sizeof(stk_params), s.dtype, s.rows, s.V, s.ld, s.K, s.temperature};
    params.top_p = s.top_p;
    // Invalid arguments are passed along with valid buffers.
    const auto& wrong = spec.params.value("override", nlohmann::json::object());
    params.p.rows = wrong.value("rows", params.p.rows);
    params.p.V = wrong.value("V", params.p.V);
    params.p.ld = wrong.value("ld", params.p.ld);
    params.p.K = wrong.value("K", params.p.K);
    params.p.temperature = wrong.value("temperature", params.p.temperature);
    plan.set_params(params);
    const Dtype input = s.dtype == ASSAY_F32 ? Dtype::f32 : Dtype::bf16;
    const bool null_logits = spec.params.value("null_logits", false);
    const std::vector<std::int64_t> winners{s.rows, s.K}, rows{s.rows};
    BufferPlan logits{.name = "logits", .dtype = input, .shape = {s.extent()}};
    logits.null = null_logits;
    for (std::int64_t r = 0; s.sparse() && r < s.rows; ++r)
      logits.pieces.push_back({r * s.ld, s.V});
    plan.add(kLogits, std::move(logits));
    plan.add(kIdx, {.name = "idx", .dtype = Dtype::i32, .shape = winners, .role = Role::output});
    plan.add(kProb, {.name = "prob", .dtype = Dtype::f32, .shape = winners, .role = Role::output});
    plan.add(kLse, {.name = "lse",
                    .dtype = Dtype::f32,
                    .shape = rows,
                    .role = Role::output,
                    .null = s.null_lse});
    plan.add(kCount, {.name = "count",
                      .dtype = Dtype::i32,
                      .shape = rows,
                      .role = Role::output,
                      .null = s.entry != kTopP});
    plan.pass_as_null(spec.params.value("null", std::vector<std::string>{}));
    plan.aligned = spec.group == CaseGroup::timed;
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    generate(spec, seeds.inputs, buffers);
  }

  std::unique_ptr<Reference> reference(const CaseSpec& spec, const CasePlan&,
                                       BufferViews buffers) const override {
    if (spec.expect_status != ASSAY_OK) return std::make_unique<TopKReference>();
    return make_reference(shape_of(spec), buffers[kLogits].data);
  }

  CheckResult check(const CaseSpec& spec, const CasePlan&, const Reference& reference,
                    BufferViews buffers, const CallbackServer*) const override {
    return check_outputs(spec, static_cast<const TopKReference&>(reference), buffers);
  }

  std::optional<LeastWork> least_work(const CaseSpec&, const CasePlan& plan) const override {
    return LeastWork{.bytes = plan.bytes_of({"logits", "idx", "prob", "lse", "count"})};
  }

  std::string shape(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    return fmt::format("rows={} V={}{} K={}{}{}", s.rows, s.V,
                       s.sparse() ? fmt::format(" ld={}", s.ld) : "", s.K,
                       s.dtype == ASSAY_F32 ? "" : " bf16",
                       s.temperature == 1 ? "" : fmt::format(" T={}", s.temperature));
  }
};

}  // namespace assay::fused_softmax_topk

ASSAY_CHALLENGE(fused_softmax_topk, fused_softmax_topk::FusedSoftmaxTopK)
