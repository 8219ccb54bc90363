#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/size.h"
#include "trusted.h"

namespace assay::beam_search {
namespace {

using nlohmann::json;

// Overrides make a call invalid; they change only what the submission is told.
Params params_of(const CaseSpec& spec, const Shape& s) {
  Params p;
  const json wrong = spec.params.value("override", json::object());
  p.V = wrong.value("V", s.V);
  p.kind = wrong.value("kind", s.kind);
  p.null_step = wrong.value("null_step", 0);
  p.null_lm = wrong.value("null_lm", 0);
  bs_params& q = p.search;
  q.size = static_cast<std::uint32_t>(wrong.value("size", sizeof(bs_params)));
  q.B = wrong.value("B", s.B);
  q.K = wrong.value("K", s.K);
  q.max_new = wrong.value("max_new", s.max_new);
  q.eos = wrong.value("eos", s.eos);
  q.alpha = wrong.contains("alpha") ? std::numeric_limits<double>::infinity() : s.alpha;
  q.rank_mode = wrong.value("rank_mode", s.rank_mode);
  q.keep_finished = wrong.value("keep_finished", s.keep_finished);
  q.penalty = wrong.value("penalty", s.penalty);
  q.min_new = wrong.value("min_new", s.min_new);
  bs_options& o = p.options;
  o.size = static_cast<std::uint32_t>(wrong.value("options_size", sizeof(bs_options)));
  o.row_dtype = wrong.value("row_dtype", s.row_dtype == Dtype::f32    ? ASSAY_F32
                                         : s.row_dtype == Dtype::bf16 ? ASSAY_BF16
                                                                      : ASSAY_F16);
  o.no_repeat_ngram = s.no_repeat_ngram;
  o.n_bad = wrong.value("n_bad", static_cast<std::int32_t>(s.bad.size()));
  o.groups = s.groups;
  o.diversity = wrong.contains("diversity") ? std::numeric_limits<double>::infinity() : s.diversity;
  o.patience = s.patience;
  return p;
}

void plan_buffers(const Shape& s, CasePlan& plan) {
  const std::vector<std::int64_t> items{s.B}, beams{s.B, s.K}, texts{s.B, s.K, s.max_new};
  const std::vector<std::int64_t> prompt{s.prompt_start.back()};
  plan.add(kPromptLen,
           {.name = "prompt_len", .dtype = Dtype::i32, .shape = items, .role = Role::input});
  plan.add(kPromptStart,
           {.name = "prompt_start", .dtype = Dtype::i64, .shape = items, .role = Role::input});
  plan.add(kPrompt, {.name = "prompt", .dtype = Dtype::i32, .shape = prompt, .role = Role::input});
  plan.add(
      kModelSeed,
      {.name = "model_seed", .dtype = Dtype::u64, .shape = {1}, .role = Role::input, .phase = 1});
  plan.add(kSeq, {.name = "seq", .dtype = Dtype::i32, .shape = texts, .role = Role::output});
  plan.add(kLen, {.name = "len", .dtype = Dtype::i32, .shape = beams, .role = Role::output});
  plan.add(kAcc, {.name = "acc", .dtype = Dtype::f64, .shape = beams, .role = Role::output});
  plan.add(kScore, {.name = "score", .dtype = Dtype::f64, .shape = beams, .role = Role::output});
  plan.add(kFinished,
           {.name = "finished", .dtype = Dtype::i32, .shape = beams, .role = Role::output});
  plan.add(kNOut, {.name = "n_out", .dtype = Dtype::i32, .shape = items, .role = Role::output});
  if (!s.with_options) return;
  std::int64_t tokens = 0;
  for (const auto& sequence : s.bad) tokens += static_cast<std::int64_t>(sequence.size());
  const auto sequences = static_cast<std::int64_t>(s.bad.size());
  plan.add(kBadLen,
           {.name = "bad_len", .dtype = Dtype::i32, .shape = {sequences}, .role = Role::input});
  plan.add(kBad, {.name = "bad", .dtype = Dtype::i32, .shape = {tokens}, .role = Role::input});
}

void read_options(const json& j, Shape& s) {
  const std::string rows = j.value("rows", "f32");
  s.with_options = true;
  s.row_dtype = rows == "bf16" ? Dtype::bf16 : rows == "f16" ? Dtype::f16 : Dtype::f32;
  s.no_repeat_ngram = j.value("no_repeat_ngram", 0);
  s.bad = j.value("bad", s.bad);
  s.groups = j.value("groups", 1);
  s.diversity = j.value("diversity", 0.0);
  s.patience = j.value("patience", 0.0);
}

// Whether some seed leaves no decision to rounding. Equal sums are not exact ties if scores of
// different lengths, or logits, are compared, and with many decisions some are close. Inexact sums
// lie near multiples of 2^-12, so a wide list has two near the same multiple.
bool decidable(const json& params, std::int64_t beams) {
  constexpr std::int64_t kMostInexactPairs = 10'000;
  const json& model = params.at("model");
  const bool ties = model.contains("coarse") || model.contains("equal");
  const bool logits = params.at("logits"), inexact = model.value("inexact", false);
  const bool penalised = params.at("eos") != -1 && params.at("alpha") != 0.0;
  if (logits) return !ties && beams <= 48;
  const std::int64_t K = params.at("K");
  if (inexact && beams * K > kMostInexactPairs) return false;
  // Beyond this divisor, sums a step of 2^-12 apart have scores too close to tell apart.
  constexpr double kMostClearDivisor = 0x1p-12 / kClearGap;
  const bool close = penalised && std::pow(params.at("max_new").get<double>(),
                                           params.at("alpha").get<double>()) > kMostClearDivisor;
  return !(penalised || inexact) || (!ties && beams <= (close ? 300 : 1000));
}

}  // namespace

Shape shape_of(const CaseSpec& spec) {
  const json& j = spec.params;
  Shape s;
  s.B = j.value("B", 1);
  s.K = j.value("K", 4);
  s.V = j.at("V");
  s.max_new = j.at("max_new");
  s.eos = j.value("eos", -1);
  s.alpha = j.value("alpha", 0.0);
  s.kind = j.value("logits", false) ? BS_LOGITS : BS_LOG_PROBS;
  s.rank_mode = j.value("rank_mode", 0);
  s.keep_finished = j.value("keep_finished", 0);
  s.penalty = j.value("penalty", 0);
  s.min_new = j.value("min_new", 0);
  s.exact_sums = !j.value("model", json::object()).value("inexact", false);
  s.strict = j.value("strict", spec.group == CaseGroup::timed);
  s.early = j.value("early", false);
  if (j.contains("options")) read_options(j.at("options"), s);
  const json prompts = j.value("prompts", json::array({7}));
  for (std::size_t b = 0; b < to_size(s.B); ++b) {
    s.prompt_start.push_back(s.prompt_start.back() +
                             prompts.at(b % prompts.size()).get<std::int64_t>());
  }
  return s;
}

class BeamSearch final : public Challenge {
 public:
  std::optional<DrawnCase> drawn(const json& draw) const override {
    DrawnCase c{draw};
    json& params = c.params;
    const json wrong = params.at("invalid"), model = params.at("model");
    params.erase("invalid");
    const std::int64_t B = params.at("B"), K = params.at("K"), V = params.at("V"),
                       max_new = params.at("max_new");
    const std::string eos = params.at("eos");
    params["eos"] = eos == "none" ? -1 : eos == "first" ? 0 : eos == "middle" ? V / 2 : V - 1;
    constexpr std::int64_t kMostValues = 1 << 21;
    if (B * K * V * std::max<std::int64_t>(max_new, 1) > kMostValues) return std::nullopt;
    if (eos == "none" && (model.contains("eos_rate") || model.contains("end_at")))
      return std::nullopt;
    if (!decidable(params, B * K * max_new)) return std::nullopt;
    if (params.at("logits") == false) params["model"].erase("offset");
    json options = params.at("options");
    params.erase("options");
    if (!options.empty()) {
      if (options.contains("groups") && K % options.at("groups").get<std::int64_t>() != 0)
        return std::nullopt;
      if (options.contains("bad") && V < 2) return std::nullopt;  // its tokens are 0 and 1
      if (options.contains("patience")) params["keep_finished"] = 1;
      params["options"] = options;
    }
    if (wrong.empty()) return c;

    // An array without items or steps may be NULL.
    const std::string null = wrong.value("null", "");
    if (B == 0 || (null == "seq" && max_new == 0)) return std::nullopt;
    if (null.empty()) {
      params["override"] = wrong;
      if (wrong.contains("eos")) params["override"]["eos"] = wrong.at("eos") == "V" ? V : -2;
    } else {
      params["null"] = {null};
      // If no prompt has a token, there is no array of them.
      if (null == "prompt" && params.at("prompts") == json::array({0})) return std::nullopt;
    }
    c.expect_status = ASSAY_EINVAL;
    return c;
  }

  CasePlan plan(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    CasePlan plan;
    plan.entry = s.with_options ? kWithOptions : kPlain;
    plan.set_params(params_of(spec, s));
    plan_buffers(s, plan);
    for (BufferPlan& buffer : plan.buffers) buffer.host = true;
    plan.pass_as_null(spec.params.value("null", std::vector<std::string>{}));
    plan.aligned = spec.group == CaseGroup::timed;
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    generate_inputs(spec, shape_of(spec), seeds, buffers);
  }

  std::unique_ptr<Reference> reference(const CaseSpec& spec, const CasePlan&,
                                       BufferViews buffers) const override {
    if (spec.expect_status != ASSAY_OK) return std::make_unique<BeamReference>();
    const Shape s = shape_of(spec);
    return search(s, model_of(spec, s, *buffers[kModelSeed].as<std::uint64_t>()));
  }

  CheckResult check(const CaseSpec& spec, const CasePlan&, const Reference& reference,
                    BufferViews buffers, const CallbackServer* server) const override {
    return check_outputs(spec, shape_of(spec), static_cast<const BeamReference&>(reference),
                         buffers, static_cast<const ModelServer*>(server));
  }

  std::optional<json> recorded(const RecordedCall& call) const override {
    return recorded_params(call);
  }
  bool adopt(const CaseSpec& spec, const CasePlan&, BufferViews buffers) const override {
    return adopt_inputs(spec, shape_of(spec), buffers);
  }

  bool has_callbacks(const CaseSpec&) const override { return true; }

  std::unique_ptr<CallbackServer> callbacks(const CaseSpec& spec, const CasePlan&,
                                            BufferViews buffers) const override {
    const Shape s = shape_of(spec);
    return std::make_unique<ModelServer>(
        model_of(spec, s, *buffers[kModelSeed].as<std::uint64_t>()),
        4 * std::int64_t{s.max_new} + 4);
  }

  // Each step reads the logits of every beam once; the first step has one beam per item. If beams
  // may end early, there is no simple count.
  std::optional<LeastWork> least_work(const CaseSpec& spec, const CasePlan&) const override {
    const Shape s = shape_of(spec);
    if (s.eos >= 0) return std::nullopt;
    const double rows = static_cast<double>(s.B) * (1 + (static_cast<double>(s.max_new) - 1) * s.K);
    return LeastWork{.bytes = rows * s.V * static_cast<double>(size_of(s.row_dtype)),
                     .launches = static_cast<double>(s.max_new)};
  }

  std::string shape(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    return fmt::format("B={} K={} V={} steps={}", s.B, s.K, s.V, s.max_new);
  }
};

}  // namespace assay::beam_search

ASSAY_CHALLENGE(beam_search, beam_search::BeamSearch)
