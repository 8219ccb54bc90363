#include <fmt/format.h>

#include <algorithm>

#include "assay/error.h"
#include "trusted.h"

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
  c.eps = j.value("eps", c.eps);
  return c;
}

using Dimensions = std::vector<std::int64_t>;

// Sizes that several entries share; clamped to be non-negative for invalid calls.
struct Sizes {
  explicit Sizes(const Params& p)
      : M(at_least_0(p.M)),
        rows(at_least_0(p.rows)),
        cols(at_least_0(p.cols)),
        matrix{rows, cols},
        blocks{block_bytes(rows, cols)},
        dense{block_bytes(rows, cols) / kBlockBytes * kDenseBytes},
        blob{blob_size(p.config)} {}

  static std::int64_t at_least_0(std::int64_t n) { return std::max<std::int64_t>(n, 0); }

  std::int64_t M, rows, cols;
  Dimensions matrix, blocks, dense, blob;
};

// Phase 1 never comes, so the worker never sees its buffers.
void plan_linear(const Shape& s, const Sizes& z, CasePlan& plan) {
  using namespace linear;
  const Dtype t = s.entry == kLinearBf16 ? Dtype::bf16 : Dtype::f32;
  const Dimensions x{z.M, z.cols}, y{z.M, z.rows};
  plan.add(kX, {.name = "x", .dtype = t, .shape = x, .role = Role::input});
  plan.add(kBlocks, {.name = "blocks", .dtype = Dtype::u8, .shape = z.blocks, .role = Role::input});
  plan.add(kDy, {.name = "dy", .dtype = t, .shape = y, .role = Role::input});
  plan.add(kY, {.name = "y", .dtype = t, .shape = y, .role = Role::output});
  plan.add(kDx, {.name = "dx", .dtype = t, .shape = x, .role = Role::output});
  plan.add(kDw,
           {.name = "dw_latent", .dtype = Dtype::f32, .shape = z.matrix, .role = Role::output});
  plan.add(kSecret,
           {.name = "secret", .dtype = Dtype::i64, .shape = {1}, .role = Role::input, .phase = 1});
}

// Phase 1 never comes: it holds what the worker must not see.
void plan_train(const Shape& s, CasePlan& plan) {
  using namespace train;
  const Params& p = s.call;
  const std::int64_t T = p.config.T, blob = std::max<std::int64_t>(blob_size(p.config), 64);
  const Dimensions docs{Sizes::at_least_0(p.n_docs), T}, held_out{s.held_out, T},
      foreign{s.foreign, T};
  plan.add(kDocs, {.name = "docs", .dtype = Dtype::u16, .shape = docs, .role = Role::input});
  plan.add(kBlob, {.name = "blob", .dtype = Dtype::u8, .shape = {blob}, .role = Role::output});
  plan.add(kHeldOut, {.name = "held_out",
                      .dtype = Dtype::u16,
                      .shape = held_out,
                      .role = Role::input,
                      .phase = 1});
  plan.add(
      kCost,
      {.name = "cost", .dtype = Dtype::f32, .shape = held_out, .role = Role::input, .phase = 1});
  plan.add(
      kKind,
      {.name = "kind", .dtype = Dtype::u8, .shape = held_out, .role = Role::input, .phase = 1});
  plan.add(
      kForeign,
      {.name = "foreign", .dtype = Dtype::u16, .shape = foreign, .role = Role::input, .phase = 1});
}

void plan_train_part(const Shape& s, const Sizes& z, CasePlan& plan) {
  using namespace train_part;
  plan_train(s, plan);
  const Dimensions state{16 * weight_count(s.call.config) + 65536};
  plan.add(kWhole,
           {.name = "whole_blob", .dtype = Dtype::u8, .shape = z.blob, .role = Role::output});
  plan.add(kState, {.name = "state",
                    .dtype = Dtype::u8,
                    .shape = state,
                    .role = Role::output,
                    .compared = false});
  plan.add(kMoved, {.name = "moved_state",
                    .dtype = Dtype::u8,
                    .shape = state,
                    .role = Role::output,
                    .compared = false});
  if (s.call.interrupted_again_at > 0) {
    for (const auto& [handle, name] :
         {std::pair(kLater, "later_blob"), std::pair(kLaterResumed, "later_resumed_blob")}) {
      plan.add(handle, {.name = name, .dtype = Dtype::u8, .shape = z.blob, .role = Role::output});
    }
  }
}

void plan_logits(const Shape& s, const Sizes& z, CasePlan& plan) {
  using namespace logits;
  const std::int64_t n = Sizes::at_least_0(s.call.n_docs), T = s.call.config.T, V = s.call.config.V;
  plan.add(kDocs, {.name = "docs", .dtype = Dtype::u16, .shape = {n, T}, .role = Role::input});
  plan.add(kBlob, {.name = "blob", .dtype = Dtype::u8, .shape = z.blob, .role = Role::input});
  plan.add(logits::kLogits,
           {.name = "logits", .dtype = Dtype::f32, .shape = {n * T, V}, .role = Role::output});
}

void plan_generate(const Shape& s, const Sizes& z, CasePlan& plan) {
  using namespace generation;
  const Params& p = s.call;
  const tt_config& c = p.config;
  const tt_generation& g = p.generation;
  const std::int64_t steps = Sizes::at_least_0(g.steps);
  const Dimensions cache{g.n_docs, 2 * c.L, c.T, std::int64_t{c.Hkv} * c.hd};
  plan.add(kBlob, {.name = "blob", .dtype = Dtype::u8, .shape = z.blob, .role = Role::input});
  plan.add(kState, {.name = "state",
                    .dtype = Dtype::f32,
                    .shape = cache,
                    .role = Role::output,
                    .compared = false});
  plan.add(
      kTokens,
      {.name = "tokens", .dtype = Dtype::u16, .shape = {g.n_docs, g.n_new}, .role = Role::input});
  plan.add(kGenerated, {.name = "generated",
                        .dtype = Dtype::u16,
                        .shape = {g.n_docs, steps},
                        .role = Role::output,
                        .due = 0});
  plan.add(kMoreTokens, {.name = "more_tokens",
                         .dtype = Dtype::u16,
                         .shape = {g.n_docs, p.more_new},
                         .role = Role::input,
                         .phase = 1});
  plan.add(kMoreGenerated, {.name = "more_generated",
                            .dtype = Dtype::u16,
                            .shape = {g.n_docs, p.more_steps},
                            .role = Role::output});
}

void plan_distill(const Sizes& z, CasePlan& plan) {
  using namespace distill;
  const Dimensions logits{z.M, z.cols};
  plan.add(kTeacher,
           {.name = "teacher", .dtype = Dtype::f32, .shape = logits, .role = Role::input});
  plan.add(kStudent,
           {.name = "student", .dtype = Dtype::f32, .shape = logits, .role = Role::input});
  plan.add(kLoss, {.name = "loss", .dtype = Dtype::f32, .shape = {z.M}, .role = Role::output});
  plan.add(kGradient,
           {.name = "gradient", .dtype = Dtype::f32, .shape = logits, .role = Role::output});
}

void plan_statistics(const CaseSpec& spec, const Shape& s, const Sizes& z, CasePlan& plan) {
  using namespace statistics;
  const auto matrices = static_cast<std::int64_t>(matrices_of(s.call.config).size());
  plan.add(kBlob, {.name = "blob", .dtype = Dtype::u8, .shape = z.blob, .role = Role::input});
  plan.add(kBefore, {.name = "before",
                     .dtype = Dtype::u8,
                     .shape = z.blob,
                     .role = Role::input,
                     .null = spec.params.value("null_before", false)});
  plan.add(kCounts, {.name = "counts",
                     .dtype = Dtype::i64,
                     .shape = {matrices, kCountsPerMatrix},
                     .role = Role::output});
}

// One matrix as an input, and the same matrix in another form as the output.
void plan_conversion(int from_handle, const BufferPlan& from, int to_handle, BufferPlan to,
                     CasePlan& plan) {
  plan.add(from_handle, from);
  to.role = Role::output;
  plan.add(to_handle, std::move(to));
}

void plan_buffers(const CaseSpec& spec, const Shape& s, CasePlan& plan) {
  const Sizes z(s.call);
  const BufferPlan weights{.name = "w", .dtype = Dtype::f32, .shape = z.matrix};
  const BufferPlan blocks{.name = "blocks", .dtype = Dtype::u8, .shape = z.blocks};
  const BufferPlan dense{.name = "dense", .dtype = Dtype::u8, .shape = z.dense};
  switch (s.entry) {
    case kQuantize: return plan_conversion(quantize::kW, weights, quantize::kBlocks, blocks, plan);
    case kDequantize:
      return plan_conversion(dequantize::kBlocks, blocks, dequantize::kW, weights, plan);
    case kPackDense: return plan_conversion(dense::kFrom, blocks, dense::kTo, dense, plan);
    case kUnpackDense: return plan_conversion(dense::kFrom, dense, dense::kTo, blocks, plan);
    case kLinear:
    case kLinearBf16: return plan_linear(s, z, plan);
    case kBlobBytes:
      return plan.add(blob_bytes::kBytes,
                      {.name = "bytes", .dtype = Dtype::i64, .shape = {1}, .role = Role::output});
    case kTrain: return plan_train(s, plan);
    case kTrainPart: return plan_train_part(s, z, plan);
    case kLogits: return plan_logits(s, z, plan);
    case kGenerate: return plan_generate(s, z, plan);
    case kDistill: return plan_distill(z, plan);
    case kStatistics: return plan_statistics(spec, s, z, plan);
  }
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
  s.call.generation = {sizeof(tt_generation), s.call.n_docs, j.value("position", std::int64_t{0}),
                       j.value("n_new", std::int64_t{0}), j.value("steps", std::int64_t{0})};
  s.call.more_new = j.value("more_new", std::int64_t{0});
  s.call.more_steps = j.value("more_steps", std::int64_t{0});
  s.call.temperature = j.value("temperature", 1.0f);
  s.call.interrupted_at = j.value("interrupted_at", std::int64_t{0});
  s.call.interrupted_again_at = j.value("interrupted_again_at", std::int64_t{0});
  s.held_out = j.value("held_out", std::int64_t{0});
  s.foreign = j.value("foreign", std::int64_t{0});
  return s;
}

class TernaryTraining final : public Challenge {
 public:
  // Draws formats and arithmetic; small cases cannot test what training learns.
  std::optional<DrawnCase> drawn(const json& draw) const override {
    const std::string entry = draw.at("entry"), wrong = draw.at("invalid");
    DrawnCase c{{{"entry", entry}}};
    const auto take = [&](std::initializer_list<const char*> names) {
      for (const char* name : names) c.params[name] = draw.at(name);
    };
    if (entry == "logits" || entry == "blob_bytes" || entry == "statistics") {
      c.params["config"] = draw.at("heads");
      c.params["config"].update(
          {{"V", draw.at("V")}, {"L", draw.at("L")}, {"ff", 128}, {"T", draw.at("T")}});
      if (entry == "logits") take({"n_docs"});
      if (entry == "statistics") c.params["config"]["tied"] = draw.at("tied");
      return wrong.empty() ? std::optional(c) : std::nullopt;
    }
    take({"rows", "sigma"});
    c.params["cols"] = 128 * draw.at("blocks").get<std::int64_t>();
    const bool linear = entry.starts_with("linear");
    if (linear || entry == "distill") take({"M"});
    if (entry == "quantize") take({"weights"});
    if (linear || entry == "distill")
      c.params["sigma"] = std::min(draw.at("sigma").get<double>(), 1.0);
    if (entry == "distill") {
      take({"temperature"});
      c.params["cols"] = draw.at("V");
    }
    if (wrong.empty()) return c;
    if (entry == "distill") return std::nullopt;
    if (wrong == "partial") {
      c.params["cols"] = c.params.at("cols").get<std::int64_t>() + 1;
    } else {
      c.params["rows"] = -1;
    }
    c.expect_status = ASSAY_EINVAL;
    return c;
  }

  CasePlan plan(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    CasePlan plan;
    plan.entry = s.entry;
    plan.set_params(s.call);
    plan.aligned = spec.group == CaseGroup::timed;
    plan_buffers(spec, s, plan);
    if (s.call.more_new > 0) plan.phases = 2;
    plan.keep_on_host({"docs", "bytes", "held_out", "cost", "kind", "foreign", "tokens",
                       "generated", "more_tokens", "more_generated"});
    plan.pass_as_null(spec.params.value("null", std::vector<std::string>{}));
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    generate(spec, seeds.inputs, seeds.judging, buffers);
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

  std::optional<json> recorded(const RecordedCall& call) const override {
    return recorded_params(call);
  }
  bool adopt(const CaseSpec& spec, const CasePlan&, BufferViews buffers) const override {
    return adopt_inputs(spec, buffers);
  }

  // For a linear layer: the product and both gradients. For training: those of every matrix for
  // every token, and causal attention with its gradients.
  std::optional<LeastWork> least_work(const CaseSpec& spec, const CasePlan&) const override {
    const Shape s = shape_of(spec);
    const Params& p = s.call;
    if (s.entry == kLinear)
      return LeastWork{.flops = 6.0 * static_cast<double>(p.M * p.rows * p.cols)};
    if (s.entry != kTrain) return std::nullopt;
    const tt_config& c = p.config;
    const double heads = c.hd * (2.0 * c.Hq + 2.0 * c.Hkv) * c.d, ff = 3.0 * c.ff * c.d;
    const double weights = c.L * (heads + ff) + static_cast<double>(c.V) * c.d;
    const double attention = 12.0 * c.L * c.Hq * c.hd * c.T / 2;
    return LeastWork{.flops = static_cast<double>(p.budget.max_tokens) * (6 * weights + attention)};
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
