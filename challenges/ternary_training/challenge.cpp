#include <fmt/format.h>

#include <algorithm>

#include "tern.h"
#include "util/files.h"

namespace assay::ternary_training {
namespace {

using nlohmann::json;

Entry entry_named(const std::string& name) {
  constexpr const char* kNames[] = {
      "quantize",     "dequantize",  "linear",   "blob_bytes", "train",      "logits", "pack_dense",
      "unpack_dense", "linear_bf16", "generate", "train_part", "statistics", "distill"};
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(std::size(kNames)); ++i) {
    if (name == kNames[i]) return static_cast<Entry>(i);
  }
  throw Error(fmt::format("ternary_training: unknown entry '{}'", name));
}

// The configurations that cases name; "override" changes single fields.
tt_config config_of(const json& params) {
  tt_config c{sizeof(tt_config), 256, 128, 3, 4, 2, 32, 384, 128, 1, 1e4f, 1e-6f};
  const json& j = params.value("config", json::object());
  const auto take = [&](const char* name, std::int32_t& field) { field = j.value(name, field); };
  take("V", c.V);
  take("d", c.d);
  take("L", c.L);
  take("Hq", c.Hq);
  take("Hkv", c.Hkv);
  take("hd", c.hd);
  take("ff", c.ff);
  take("T", c.T);
  take("tied", c.tied);
  c.theta = j.value("theta", c.theta);
  return c;
}

std::vector<BufferPlan> buffers_of(const CaseSpec& spec, const Shape& s) {
  const Params& p = s.call;
  const auto at_least_0 = [](std::int64_t n) { return std::max<std::int64_t>(n, 0); };
  const std::int64_t rows = at_least_0(p.rows), cols = at_least_0(p.cols), M = at_least_0(p.M);
  const std::vector<std::int64_t> matrix{rows, cols}, blocks{block_bytes(rows, cols)};
  const std::int64_t T = p.config.T;
  const auto docs = [&](std::int64_t n) { return std::vector<std::int64_t>{n, T}; };
  const std::vector<std::int64_t> dense{block_bytes(rows, cols) / kBlockBytes * kDenseBytes},
      blob{blob_size(p.config)};
  const Dtype activations = s.entry == kLinearBf16 ? Dtype::bf16 : Dtype::f32;
  switch (s.entry) {
    case kQuantize: return {{"w", Dtype::f32, matrix}, {"blocks", Dtype::u8, blocks, Role::output}};
    case kDequantize:
      return {{"blocks", Dtype::u8, blocks}, {"w", Dtype::f32, matrix, Role::output}};
    case kLinear:
    case kLinearBf16:
      return {{"x", activations, {M, cols}, Role::input, 0, spec.params.value("null_x", false)},
              {"blocks", Dtype::u8, blocks},
              {"dy", activations, {M, rows}},
              {"y", activations, {M, rows}, Role::output},
              {"dx", activations, {M, cols}, Role::output},
              {"dw_latent", Dtype::f32, matrix, Role::output}};
    case kBlobBytes: return {{"bytes", Dtype::i64, {1}, Role::output}};
    case kTrain:
    case kTrainPart: {
      // Phase 1 never comes: the worker never sees those buffers.
      std::vector<BufferPlan> plans{
          {"docs", Dtype::u16, docs(at_least_0(p.n_docs))},
          {"blob", Dtype::u8, {std::max<std::int64_t>(blob_size(p.config), 64)}, Role::output},
          {"held_out", Dtype::u16, docs(s.held_out), Role::input, 1},
          {"cost", Dtype::f32, docs(s.held_out), Role::input, 1},
          {"kind", Dtype::u8, docs(s.held_out), Role::input, 1},
          {"foreign", Dtype::u16, docs(s.foreign), Role::input, 1}};
      if (s.entry == kTrain) return plans;
      const std::int64_t state = 16 * weight_count(p.config) + 65536;
      plans.push_back({"whole_blob", Dtype::u8, blob, Role::output});
      for (const char* name : {"state", "moved_state"}) {
        plans.push_back({name, Dtype::u8, {state}, Role::output});
        plans.back().compared = false;
      }
      return plans;
    }
    case kLogits:
      return {{"docs", Dtype::u16, docs(p.n_docs)},
              {"blob", Dtype::u8, {blob_size(p.config)}},
              {"logits", Dtype::f32, {p.n_docs * T, p.config.V}, Role::output}};
    case kPackDense:
      return {{"blocks", Dtype::u8, blocks}, {"dense", Dtype::u8, dense, Role::output}};
    case kUnpackDense:
      return {{"dense", Dtype::u8, dense}, {"blocks", Dtype::u8, blocks, Role::output}};
    case kGenerate: {
      const tt_config& c = p.config;
      const tt_generation& g = p.generation;
      std::vector<BufferPlan> plans{
          {"blob", Dtype::u8, blob},
          {"state", Dtype::f32, {g.n_docs, 2 * c.L, T, std::int64_t{c.Hkv} * c.hd}, Role::output},
          {"tokens", Dtype::u16, {g.n_docs, g.n_new}},
          {"generated", Dtype::u16, {g.n_docs, g.steps}, Role::output},
          {"more_tokens", Dtype::u16, {g.n_docs, p.more_new}, Role::input, 1},
          {"more_generated", Dtype::u16, {g.n_docs, p.more_steps}, Role::output}};
      plans[generation::kState].compared = false;
      return plans;
    }
    case kDistill:
      return {{"teacher", Dtype::f32, {M, cols}},
              {"student", Dtype::f32, {M, cols}},
              {"loss", Dtype::f32, {M}, Role::output},
              {"gradient", Dtype::f32, {M, cols}, Role::output}};
    case kStatistics:
      return {{"blob", Dtype::u8, blob},
              {"before", Dtype::u8, blob, Role::input, 0, spec.params.value("null_before", false)},
              {"counts",
               Dtype::i64,
               {static_cast<std::int64_t>(matrices_of(p.config).size()), kCountsPerMatrix},
               Role::output}};
  }
  return {};
}

}  // namespace

Shape shape_of(const CaseSpec& spec) {
  const json& j = spec.params;
  Shape s;
  s.entry = entry_named(j.at("entry"));
  s.call.M = j.value("M", std::int64_t{0});
  s.call.rows = j.value("rows", std::int64_t{0});
  s.call.cols = j.value("cols", std::int64_t{0});
  s.call.n_docs = j.value("n_docs", std::int64_t{0});
  s.call.config = config_of(j);
  s.call.budget = {sizeof(tt_budget), j.value("seconds", 60.0),
                   j.value("max_tokens", std::int64_t{0}), j.value("init_seed", std::uint64_t{1})};
  s.call.generation = {sizeof(tt_generation), s.call.n_docs, 0, j.value("n_new", std::int64_t{0}),
                       j.value("steps", std::int64_t{0})};
  s.call.more_new = j.value("more_new", std::int64_t{0});
  s.call.more_steps = j.value("more_steps", std::int64_t{0});
  s.call.temperature = j.value("temperature", 1.0f);
  s.call.interrupted_at = j.value("interrupted_at", std::int64_t{0});
  s.held_out = j.value("held_out", std::int64_t{0});
  s.foreign = j.value("foreign", std::int64_t{0});
  return s;
}

class TernaryTraining final : public Challenge {
 public:
  CasePlan plan(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    CasePlan plan;
    plan.entry = s.entry;
    plan.set_params(s.call);
    plan.aligned = spec.group == CaseGroup::timed;
    plan.buffers = buffers_of(spec, s);
    if (s.call.more_new > 0) plan.phases = 2;
    plan.keep_on_host({"docs", "bytes", "held_out", "cost", "kind", "foreign", "tokens",
                       "generated", "more_tokens", "more_generated"});
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, std::uint64_t seed,
            BufferViews buffers) const override {
    generate(spec, seed, buffers);
  }

  std::unique_ptr<Reference> reference(const CaseSpec& spec, const CasePlan&,
                                       BufferViews buffers) const override {
    if (spec.expect_status != ASSAY_OK) return std::make_unique<TernReference>();
    return make_reference(spec, buffers);
  }

  CheckResult check(const CaseSpec& spec, const CasePlan&, const Reference& reference,
                    BufferViews buffers, const CallbackServer*) const override {
    return check_outputs(spec, static_cast<const TernReference&>(reference), buffers);
  }

  // A linear layer and both its gradients; of training, those of every matrix for every token, and causal attention
  // with its gradients.
  std::optional<LeastWork> least_work(const CaseSpec& spec, const CasePlan&) const override {
    const Shape s = shape_of(spec);
    const Params& p = s.call;
    if (s.entry == kLinear) return LeastWork{0, 6.0 * static_cast<double>(p.M * p.rows * p.cols)};
    if (s.entry != kTrain) return std::nullopt;
    const tt_config& c = p.config;
    const double heads = c.hd * (2.0 * c.Hq + 2.0 * c.Hkv) * c.d, ff = 3.0 * c.ff * c.d;
    const double weights = c.L * (heads + ff) + static_cast<double>(c.V) * c.d;
    const double attention = 12.0 * c.L * c.Hq * c.hd * c.T / 2;
    return LeastWork{0, static_cast<double>(p.budget.max_tokens) * (6 * weights + attention)};
  }

  std::string shape(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    const Params& p = s.call;
    const tt_config& c = p.config;
    switch (s.entry) {
      case kQuantize:
      case kPackDense:
      case kUnpackDense:
      case kDequantize: return fmt::format("{}x{}", p.rows, p.cols);
      case kLinear: return fmt::format("M={} {}x{}", p.M, p.rows, p.cols);
      case kDistill: return fmt::format("M={} V={} temperature={}", p.M, p.cols, p.temperature);
      case kLinearBf16: return fmt::format("M={} {}x{} bf16", p.M, p.rows, p.cols);
      case kStatistics:
      case kBlobBytes: return fmt::format("V={} d={} L={}", c.V, c.d, c.L);
      case kTrain:
      case kTrainPart:
        return fmt::format("V={} d={} L={} tokens={} docs={}", c.V, c.d, c.L, p.budget.max_tokens,
                           p.n_docs);
      case kLogits: return fmt::format("V={} d={} L={} docs={}", c.V, c.d, c.L, p.n_docs);
      case kGenerate:
        return fmt::format("V={} d={} L={} docs={} tokens={}+{}", c.V, c.d, c.L, p.n_docs,
                           p.generation.n_new + p.more_new, p.generation.steps + p.more_steps);
    }
    return "";
  }
};

}  // namespace assay::ternary_training

ASSAY_CHALLENGE(ternary_training, ternary_training::TernaryTraining)
