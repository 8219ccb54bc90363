#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/error.h"
#include "trusted.h"

namespace assay::layer_norm_backward {
namespace {

Mode mode_named(const std::string& name) {
  constexpr const char* kNames[] = {
      "plain", "twice", "older_cache", "residual", "rms", "invalid_backward", "invalid_forward"};
  for (std::int32_t i = 0; i < 7; ++i) {
    if (name == kNames[i]) return static_cast<Mode>(i);
  }
  throw Error(fmt::format("layer_norm_backward: unknown mode '{}'", name));
}

// Whether the call lacks an array of `elements` elements that the task needs.
bool lacks(const RecordedCall& call, Handle handle, std::int64_t elements) {
  const RecordedCall::Array* const array = call.find(handle);
  return array != nullptr && array->null && elements > 0;
}

// A forward call becomes a case whose dy is zero, a backward call one whose beta is zero.
std::optional<nlohmann::json> recorded_params(const RecordedCall& call) {
  constexpr std::int64_t kMostElements = 1 << 24;
  constexpr const char* kModes[] = {"plain", "twice", "older_cache", "residual", "rms"};
  const auto params = call.params_as<Params>();
  if (!params) return std::nullopt;
  const ln_params& p = params->p;
  const bool known = params->mode == kPlain || params->mode == kResidual || params->mode == kRms;
  const auto within = [](std::int64_t n) { return n >= 0 && n <= kMostElements; };
  if (!known || p.size != sizeof(ln_params) || !within(p.rows) || !within(p.D) ||
      p.rows * p.D > kMostElements)
    return std::nullopt;
  if ((p.dtype != ASSAY_F32 && p.dtype != ASSAY_BF16) || !(p.eps >= 0) || !std::isfinite(p.eps))
    return std::nullopt;
  const std::int64_t elements = p.rows * p.D;
  const bool forward = params->mode != kRms, residual = params->mode == kResidual;
  if (call.find(kX) == nullptr || call.find(kGamma) == nullptr || lacks(call, kX, elements) ||
      lacks(call, kGamma, p.D) || lacks(call, kDy, elements))
    return std::nullopt;
  if (forward && (lacks(call, kBeta, p.D) || lacks(call, kY, elements))) return std::nullopt;
  if (residual && (call.find(kDres) == nullptr || lacks(call, kDres, elements)))
    return std::nullopt;
  nlohmann::json found{{"rows", p.rows},
                       {"D", p.D},
                       {"eps", p.eps},
                       {"dtype", p.dtype == ASSAY_F32 ? "f32" : "bf16"},
                       {"mode", kModes[params->mode]}};
  nlohmann::json null = nlohmann::json::array();
  if (lacks(call, kDx, elements)) null.push_back("dx");
  if (lacks(call, kDgamma, p.D)) null.push_back("dgamma");
  if (lacks(call, kDbeta, p.D) || !forward) null.push_back("dbeta");
  if (!null.empty()) found["null"] = std::move(null);
  return found;
}

}  // namespace

Shape shape_of(const CaseSpec& spec) {
  const auto& j = spec.params;
  Shape s;
  s.rows = j.at("rows");
  s.D = j.at("D");
  s.dtype = j.value("dtype", "f32") == "bf16" ? ASSAY_BF16 : ASSAY_F32;
  s.eps = j.value("eps", 1e-5f);
  s.mode = mode_named(j.value("mode", "plain"));
  return s;
}

class LayerNormBackward final : public Challenge {
 public:
  std::optional<DrawnCase> drawn(const nlohmann::json& draw) const override {
    DrawnCase c{draw};
    nlohmann::json wrong = c.params.at("invalid");
    const std::string null = c.params.at("null"), mode = c.params.at("mode");
    for (const char* axis : {"invalid", "null"}) c.params.erase(axis);
    constexpr std::int64_t kMostElements = 1 << 19;
    const std::int64_t rows = c.params.at("rows"), D = c.params.at("D");
    if (rows * D > kMostElements) return std::nullopt;
    // Projections are made for the statistics of fp32 values.
    const bool projected = c.params.at("dy").value("kind", "") == "null_space";
    if (projected && c.params.at("dtype") != "f32") return std::nullopt;
    if (mode == "rms") c.params["null"] = {"dbeta"};
    if (!null.empty()) c.params["null"].push_back(null);
    if (wrong.empty()) return c;
    // An empty array may be NULL.
    const std::string missing = wrong.value("null", "");
    if (!missing.empty() && (projected || rows * D == 0)) return std::nullopt;
    c.params["mode"] = wrong.value("forward", false) ? "invalid_forward" : "invalid_backward";
    for (const char* key : {"null", "forward"}) wrong.erase(key);
    c.params["override"] = wrong;
    c.params.erase("null");
    if (!missing.empty()) c.params["null"] = {missing};
    c.expect_status = ASSAY_EINVAL;
    return c;
  }

  std::optional<nlohmann::json> recorded(const RecordedCall& call) const override {
    return recorded_params(call);
  }

  // Only x and dy may hold NaN: the task defines what the result must then be.
  bool adopt(const CaseSpec& spec, const CasePlan&, BufferViews buffers) const override {
    const Shape s = shape_of(spec);
    const auto finite = [](float value) { return std::isfinite(value); };
    for (const Handle handle : {kGamma, kBeta}) {
      if (!std::ranges::all_of(buffers[handle].span<float>(), finite)) return false;
    }
    for (const Handle handle : {kX, kDy, kDres}) {
      const auto legal = [&](float value) {
        return std::isfinite(value) || (handle != kDres && std::isnan(value));
      };
      const bool all =
          s.dtype == ASSAY_F32
              ? std::ranges::all_of(buffers[handle].span<float>(), legal)
              : std::ranges::all_of(buffers[handle].span<std::uint16_t>(), legal, &bf16_to_float);
      if (!all) return false;
    }
    return true;
  }

  CasePlan plan(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    Params params;
    params.p = {sizeof(ln_params), s.dtype, s.rows, s.D, s.eps};
    params.mode = s.mode;
    const auto& wrong = spec.params.value("override", nlohmann::json::object());
    params.p.rows = wrong.value("rows", params.p.rows);
    params.p.D = wrong.value("D", params.p.D);
    params.p.eps = wrong.value("eps", params.p.eps);

    const Dtype type = s.dtype == ASSAY_F32 ? Dtype::f32 : Dtype::bf16;
    const std::vector<std::int64_t> matrix{s.rows, s.D}, vector{s.D};
    const bool forward = s.mode != kRms;
    const bool invalid = s.mode == kInvalidBackward || s.mode == kInvalidForward;
    CasePlan plan;
    plan.set_params(params);
    plan.phases = 2;
    plan.timed_phase = 1;
    plan.aligned = spec.group == CaseGroup::timed || spec.params.value("aligned", false);
    plan.add(kX, {.name = "x", .dtype = type, .shape = matrix});
    plan.add(kGamma, {.name = "gamma", .dtype = Dtype::f32, .shape = vector});
    plan.add(kBeta, {.name = "beta", .dtype = Dtype::f32, .shape = vector});
    plan.add(kDy, {.name = "dy", .dtype = type, .shape = matrix, .phase = 1});
    plan.add(kY, {.name = "y",
                  .dtype = type,
                  .shape = matrix,
                  .role = Role::output,
                  .due = 0,
                  .null = !forward});
    // Opaque, so not compared between two runs; rms and invalid calls have none.
    plan.add(kCache, {.name = "cache",
                      .dtype = Dtype::u8,
                      .shape = {cache_capacity(s.rows)},
                      .role = Role::output,
                      .null = !forward,
                      .compared = false,
                      .sized_by = kCacheBytes});
    plan.add(kCacheBytes, {.name = "cache_bytes",
                           .dtype = Dtype::i64,
                           .shape = {1},
                           .role = Role::output,
                           .due = 0,
                           .null = !forward || invalid,
                           .host = true});
    plan.add(kDx, {.name = "dx", .dtype = type, .shape = matrix, .role = Role::output});
    plan.add(kDgamma,
             {.name = "dgamma", .dtype = Dtype::f32, .shape = vector, .role = Role::output});
    plan.add(kDbeta, {.name = "dbeta",
                      .dtype = Dtype::f32,
                      .shape = vector,
                      .role = Role::output,
                      .null = !forward});
    plan.add(kOtherX,
             {.name = "other_x", .dtype = type, .shape = matrix, .null = s.mode != kOlderCache});
    plan.add(
        kDres,
        {.name = "dres", .dtype = type, .shape = matrix, .phase = 1, .null = s.mode != kResidual});
    plan.pass_as_null(spec.params.value("null", std::vector<std::string>{}));
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    generate(spec, seeds.inputs, buffers);
  }

  std::unique_ptr<Reference> reference(const CaseSpec& spec, const CasePlan&,
                                       BufferViews buffers) const override {
    if (spec.expect_status != ASSAY_OK) return std::make_unique<Gradients>();
    return make_reference(shape_of(spec), buffers);
  }

  CheckResult check(const CaseSpec& spec, const CasePlan&, const Reference& reference,
                    BufferViews buffers, const CallbackServer*) const override {
    return check_outputs(spec, static_cast<const Gradients&>(reference), buffers);
  }

  // x and dy are read, dx is written; the mean and the reciprocal root of a row come from the
  // cache.
  std::optional<LeastWork> least_work(const CaseSpec& spec, const CasePlan& plan) const override {
    const double statistics = 8 * static_cast<double>(shape_of(spec).rows);
    return LeastWork{.bytes =
                         plan.bytes_of({"x", "gamma", "dy", "dx", "dgamma", "dbeta"}) + statistics};
  }

  std::string shape(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    return fmt::format("rows={} D={}{}{}", s.rows, s.D, s.dtype == ASSAY_F32 ? "" : " bf16",
                       s.eps == 1e-5f ? "" : fmt::format(" eps={}", s.eps));
  }
};

}  // namespace assay::layer_norm_backward

ASSAY_CHALLENGE(layer_norm_backward, layer_norm_backward::LayerNormBackward)
