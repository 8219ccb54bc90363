#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/error.h"
#include "language_model.h"
#include "trusted.h"

namespace assay::dflash_verify {
namespace {

using nlohmann::json;

template <class T>
T named(const std::map<std::string, T>& names, const std::string& name, const char* what) {
  const auto found = names.find(name);
  if (found == names.end()) throw Error(fmt::format("dflash_verify: unknown {} '{}'", what, name));
  return found->second;
}

Entry entry_named(const std::string& name) {
  return named<Entry>({{"mask", kMask},
                       {"full_mask", kFullMask},
                       {"attention", kAttention},
                       {"accept", kAccept},
                       {"compact", kCompact},
                       {"generate", kGenerate}},
                      name, "entry");
}

std::int32_t sampling_named(const std::string& name) {
  return named<std::int32_t>({{"greedy", DV_GREEDY},
                              {"A", DV_SAMPLE_TREE},
                              {"B", DV_SAMPLE_IID},
                              {"C", DV_SAMPLE_NO_REPL}},
                             name, "sampling");
}

void add_items(Shape& s, const json& params) {
  const std::int64_t copies = params.value("copies", std::int64_t{1});
  const auto items = params.find("items");
  if (items == params.end()) return;
  for (std::int64_t c = 0; c < copies; ++c) {
    for (const json& script : *items) {
      Item item;
      item.P = script.value("P", std::int64_t{5});
      item.n = script.contains("parent") ? static_cast<std::int64_t>(script.at("parent").size())
                                         : script.at("n").get<std::int64_t>();
      item.script = &script;
      s.items.push_back(item);
      s.cu.push_back(s.cu.back() + item.n);
      s.rows.push_back(s.rows.back() + item.P + item.n);
      s.largest = std::max(s.largest, item.n);
    }
  }
}

void override_params(Params& p, const json& wrong) {
  p.B = wrong.value("B", p.B);
  p.V = wrong.value("V", p.V);
  p.P = wrong.value("P", p.P);
  p.n = wrong.value("n", p.n);
  p.ldm = wrong.value("ldm", p.ldm);
  p.row_bytes = wrong.value("row_bytes", p.row_bytes);
  p.caches = wrong.value("caches", p.caches);
  p.fa.Hq = wrong.value("Hq", p.fa.Hq);
  p.fa.Hkv = wrong.value("Hkv", p.fa.Hkv);
  p.fa.D = wrong.value("D", p.fa.D);
  p.fa.B = p.B;
  p.sampling.temperature = wrong.value("temperature", p.sampling.temperature);
  p.sampling.mode = wrong.value("mode", p.sampling.mode);
  p.max_new = wrong.value("max_new", p.max_new);
  p.n_prompt = wrong.value("n_prompt", p.n_prompt);
}

Params params_of(const CaseSpec& spec, const Shape& s) {
  Params p;
  p.B = static_cast<std::int32_t>(s.B());
  p.V = s.V;
  p.caches = s.caches;
  p.null_sampling = s.sampling == DV_GREEDY ? 1 : 0;
  p.P = s.items.empty() ? 0 : s.items[0].P;
  p.n = s.items.empty() ? 0 : s.items[0].n;
  p.ldm = s.ldm;
  p.row_bytes = s.row_bytes;
  p.fa.size = sizeof(fa_params);
  p.fa.dtype = s.dtype;
  p.fa.B = s.B();
  p.fa.Hq = s.Hq;
  p.fa.Hkv = s.Hkv;
  p.fa.D = p.fa.Dv = s.D;
  p.fa.scale = s.scale;
  p.fa.window = -1;
  p.sampling.size = sizeof(dv_sampling);
  p.sampling.mode = s.sampling;
  p.sampling.temperature = s.temperature;
  p.sampling.u_step = s.tries();
  p.sampling.u_item = s.tries() * s.tries();
  const json& j = spec.params;
  p.eos = j.value("eos", false) ? LanguageModel::kEos : -1;
  p.max_nodes = j.value("max_nodes", 0);
  p.n_prompt = j.value("n_prompt", std::int64_t{0});
  p.max_new = j.value("max_new", std::int64_t{0});
  override_params(p, j.value("override", json::object()));
  return p;
}

void plan_mask(const Shape& s, CasePlan& plan) {
  using namespace mask;
  const std::int64_t n = s.nodes();
  plan.add(kP, {.name = "P", .dtype = Dtype::i64, .shape = {s.B()}, .role = Role::input});
  plan.add(kCu, {.name = "cu", .dtype = Dtype::i64, .shape = {s.B() + 1}, .role = Role::input});
  plan.add(kParent, {.name = "parent", .dtype = Dtype::i32, .shape = {n}, .role = Role::input});
  plan.add(kBits, {.name = "bits", .dtype = Dtype::u64, .shape = {n, s.ldm}, .role = Role::output});
  plan.add(kDepth, {.name = "depth", .dtype = Dtype::i32, .shape = {n}, .role = Role::output});
  plan.add(kPos, {.name = "pos", .dtype = Dtype::i64, .shape = {n}, .role = Role::output});
}

void plan_full_mask(const Shape& s, CasePlan& plan) {
  using namespace full_mask;
  const std::int64_t side = s.rows.back();
  plan.add(kParent,
           {.name = "parent", .dtype = Dtype::i32, .shape = {s.nodes()}, .role = Role::input});
  plan.add(kM, {.name = "M", .dtype = Dtype::u8, .shape = {side, side}, .role = Role::output});
}

void plan_attention(const CaseSpec& spec, const Shape& s, CasePlan& plan) {
  using namespace attention;
  const Dtype t = s.dtype == ASSAY_F32 ? Dtype::f32 : Dtype::bf16;
  const std::vector<std::int64_t> queries{s.nodes(), s.Hq, s.D}, keys{s.rows.back(), s.Hkv, s.D};
  plan.add(kP, {.name = "P", .dtype = Dtype::i64, .shape = {s.B()}, .role = Role::input});
  plan.add(kCu, {.name = "cu", .dtype = Dtype::i64, .shape = {s.B() + 1}, .role = Role::input});
  plan.add(kParent,
           {.name = "parent", .dtype = Dtype::i32, .shape = {s.nodes()}, .role = Role::input});
  plan.add(kRows, {.name = "rows", .dtype = Dtype::i64, .shape = {s.B() + 1}, .role = Role::input});
  plan.add(kQ, {.name = "q", .dtype = t, .shape = queries, .role = Role::input});
  plan.add(kK, {.name = "k", .dtype = t, .shape = keys, .role = Role::input});
  plan.add(kV, {.name = "v", .dtype = t, .shape = keys, .role = Role::input});
  plan.add(kO, {.name = "o", .dtype = t, .shape = queries, .role = Role::output});
  plan.add(kLse, {.name = "lse",
                  .dtype = Dtype::f32,
                  .shape = {s.nodes(), s.Hq},
                  .role = Role::output,
                  .null = spec.params.value("null_lse", false)});
}

void plan_accept(const CaseSpec& spec, const Shape& s, CasePlan& plan) {
  using namespace accept;
  const bool greedy = s.sampling == DV_GREEDY;
  const bool no_q = greedy || s.sampling == DV_SAMPLE_TREE;
  const std::vector<std::int64_t> items{s.B()}, nodes{s.nodes()}, roots{s.B(), s.V},
      rows{s.nodes(), s.V};
  plan.add(kCu, {.name = "cu", .dtype = Dtype::i64, .shape = {s.B() + 1}, .role = Role::input});
  plan.add(kParent, {.name = "parent", .dtype = Dtype::i32, .shape = nodes, .role = Role::input});
  plan.add(kToken, {.name = "token", .dtype = Dtype::i32, .shape = nodes, .role = Role::input});
  plan.add(kRootLogits,
           {.name = "root_logits", .dtype = Dtype::f32, .shape = roots, .role = Role::input});
  plan.add(kNodeLogits,
           {.name = "node_logits", .dtype = Dtype::f32, .shape = rows, .role = Role::input});
  plan.add(kEos, {.name = "eos",
                  .dtype = Dtype::i32,
                  .shape = items,
                  .role = Role::input,
                  .null = spec.params.value("null_eos", false)});
  plan.add(kBudget, {.name = "budget",
                     .dtype = Dtype::i32,
                     .shape = items,
                     .role = Role::input,
                     .null = spec.params.value("null_budget", false)});
  plan.add(kUniform, {.name = "uniform",
                      .dtype = Dtype::f32,
                      .shape = {s.B(), s.tries(), s.tries()},
                      .role = Role::input,
                      .null = greedy});
  plan.add(
      kRootQ,
      {.name = "root_q", .dtype = Dtype::f32, .shape = roots, .role = Role::input, .null = no_q});
  plan.add(
      kNodeQ,
      {.name = "node_q", .dtype = Dtype::f32, .shape = rows, .role = Role::input, .null = no_q});
  plan.add(kAccNode,
           {.name = "acc_node", .dtype = Dtype::i32, .shape = nodes, .role = Role::output});
  plan.add(kNAcc, {.name = "n_acc", .dtype = Dtype::i32, .shape = items, .role = Role::output});
  plan.add(kBonus, {.name = "bonus", .dtype = Dtype::i32, .shape = items, .role = Role::output});
}

void plan_compact(const Shape& s, CasePlan& plan) {
  using namespace compact;
  plan.add(kP, {.name = "P", .dtype = Dtype::i64, .shape = {s.B()}, .role = Role::input});
  plan.add(kCu, {.name = "cu", .dtype = Dtype::i64, .shape = {s.B() + 1}, .role = Role::input});
  plan.add(kAccNode,
           {.name = "acc_node", .dtype = Dtype::i32, .shape = {s.nodes()}, .role = Role::input});
  plan.add(kNAcc, {.name = "n_acc", .dtype = Dtype::i32, .shape = {s.B()}, .role = Role::input});
  plan.add(
      kRows,
      {.name = "rows", .dtype = Dtype::i64, .shape = {s.B() * s.caches + 1}, .role = Role::input});
  plan.add(kKv, {.name = "kv",
                 .dtype = Dtype::u8,
                 .shape = {cache_rows(s).back(), s.row_bytes},
                 .role = Role::inout});
}

void plan_generate(const CaseSpec& spec, CasePlan& plan) {
  using namespace generate;
  const std::int64_t n_prompt = spec.params.at("n_prompt"), max_new = spec.params.at("max_new");
  plan.add(kPrompt,
           {.name = "prompt", .dtype = Dtype::i32, .shape = {n_prompt}, .role = Role::input});
  plan.add(
      kModelSeed,
      {.name = "model_seed", .dtype = Dtype::u64, .shape = {1}, .role = Role::input, .phase = 1});
  plan.add(kOut, {.name = "out", .dtype = Dtype::i32, .shape = {max_new}, .role = Role::output});
  plan.add(kNOut, {.name = "n_out", .dtype = Dtype::i64, .shape = {1}, .role = Role::output});
}

void plan_buffers(const CaseSpec& spec, const Shape& s, CasePlan& plan) {
  switch (s.entry) {
    case kMask: return plan_mask(s, plan);
    case kFullMask: return plan_full_mask(s, plan);
    case kAttention: return plan_attention(spec, s, plan);
    case kAccept: return plan_accept(spec, s, plan);
    case kCompact: return plan_compact(s, plan);
    case kGenerate: return plan_generate(spec, plan);
  }
  throw Error("dflash_verify: unknown entry");
}

}  // namespace

Shape shape_of(const CaseSpec& spec) {
  const json& j = spec.params;
  Shape s;
  s.entry = entry_named(j.at("entry"));
  s.V = j.value("V", 0);
  s.dtype = j.value("dtype", "f32") == "bf16" ? ASSAY_BF16 : ASSAY_F32;
  s.sampling = sampling_named(j.value("sampling", "greedy"));
  s.temperature = j.value("temperature", 1.0f);
  s.Hq = j.value("Hq", std::int64_t{0});
  s.Hkv = j.value("Hkv", s.Hq);
  s.D = j.value("D", std::int64_t{0});
  s.scale = j.value("scale", s.D > 0 ? 1.0f / std::sqrt(static_cast<float>(s.D)) : 0.0f);
  s.row_bytes =
      j.value("row_bytes", s.entry == kAttention ? s.Hkv * s.D * (s.dtype == ASSAY_F32 ? 4 : 2)
                                                 : std::int64_t{0});
  s.caches = j.value("caches", 1);
  add_items(s, j);
  s.ldm = (s.largest + 63) / 64 + j.value("pad_words", std::int64_t{0});
  return s;
}

std::vector<std::int64_t> cache_rows(const Shape& s) {
  std::vector<std::int64_t> rows{0};
  for (const Item& item : s.items) {
    for (std::int32_t c = 0; c < s.caches; ++c) rows.push_back(rows.back() + item.P + item.n);
  }
  return rows;
}

// The trees of a drawn batch, with prefixes and chances that differ by item.
json drawn_items(const json& draw) {
  json items = json::array();
  const std::int64_t P = draw.at("P");
  for (const json& n : draw.at("sizes")) {
    json item{{"P", P + 3 * static_cast<std::int64_t>(items.size())},
              {"n", n},
              {"tree", draw.at("tree")}};
    item.update(draw.at("logits"));
    items.push_back(item);
  }
  return items;
}

class DflashVerify final : public Challenge {
 public:
  std::optional<DrawnCase> drawn(const json& draw) const override {
    const std::string entry = draw.at("entry");
    DrawnCase c{{{"entry", entry}}};
    const auto take = [&](std::initializer_list<const char*> names) {
      for (const char* name : names) c.params[name] = draw.at(name);
    };
    if (entry == "generate") {
      constexpr int kFewestTokens = 8;  // fewest that make up a language
      if (draw.at("V") < kFewestTokens) return std::nullopt;
      take({"V", "n_prompt", "max_new", "max_nodes", "draft", "eos"});
      if (c.params.at("eos") == true) c.params["eos_rate"] = 0.15;
      c.params["hit"] = draw.at("logits").value("hit", 0.8);
      return c;
    }
    c.params["items"] = drawn_items(draw);
    if (entry == "full_mask")
      c.params["items"].erase(c.params["items"].begin() + 1, c.params["items"].end());
    if (entry == "mask") take({"pad_words"});
    if (entry == "compact") take({"row_bytes", "caches"});
    if (entry == "accept") {
      take({"V", "sampling", "temperature", "null_eos", "null_budget"});
      // Sampling from a distribution has no ties to break.
      if (draw.at("sampling") != "greedy" && draw.at("logits").contains("levels"))
        return std::nullopt;
    }
    if (entry == "attention") {
      take({"Hkv", "D", "dtype", "null_lse"});
      c.params["Hq"] = draw.at("Hkv").get<std::int64_t>() * draw.at("group").get<std::int64_t>();
    }
    CaseSpec probe;
    probe.params = c.params;
    const Shape s = shape_of(probe);
    constexpr std::int64_t kMostElements = 1 << 21;
    const std::int64_t pairs = s.nodes() * (s.rows.back() + 1);
    if (std::max({s.nodes() * s.V, s.rows.back() * s.row_bytes,
                  pairs * s.Hq * std::max<std::int64_t>(s.D, 1) / 8}) > kMostElements)
      return std::nullopt;
    if (draw.at("invalid") == "batch" && entry != "full_mask") {
      c.params["override"] = {{"B", -1}};
      c.expect_status = ASSAY_EINVAL;
    }
    return c;
  }

  std::optional<json> recorded(const RecordedCall& call) const override {
    return recorded_params(call);
  }

  bool adopt(const CaseSpec& spec, const CasePlan&, BufferViews buffers) const override {
    return adopt_inputs(shape_of(spec), buffers);
  }

  CasePlan plan(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    CasePlan plan;
    plan.entry = s.entry;
    plan.set_params(params_of(spec, s));
    plan_buffers(spec, s, plan);
    plan.keep_on_host({"P", "cu", "parent", "rows", "token", "eos", "budget", "acc_node", "n_acc",
                       "bonus", "prompt", "model_seed", "out", "n_out"});
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
    if (spec.expect_status != ASSAY_OK) return std::make_unique<DflashReference>();
    return make_reference(spec, shape_of(spec), buffers);
  }

  CheckResult check(const CaseSpec& spec, const CasePlan&, const Reference& reference,
                    BufferViews buffers, const CallbackServer* server) const override {
    return check_outputs(spec, shape_of(spec), static_cast<const DflashReference&>(reference),
                         buffers, server);
  }

  bool has_callbacks(const CaseSpec& spec) const override {
    return spec.params.at("entry") == "generate";
  }

  std::unique_ptr<CallbackServer> callbacks(const CaseSpec& spec, const CasePlan&,
                                            BufferViews buffers) const override {
    if (!has_callbacks(spec)) return nullptr;
    return std::make_unique<ModelServer>(model_of(spec, buffers));
  }

  // Every node sees the prefix, its ancestors and itself; only the prefix is counted.
  std::optional<LeastWork> least_work(const CaseSpec& spec, const CasePlan& plan) const override {
    const Shape s = shape_of(spec);
    if (s.entry != kAttention) return std::nullopt;
    double pairs = 0;
    for (const Item& item : s.items) pairs += static_cast<double>(item.P * item.n);
    return LeastWork{.bytes = plan.bytes_of({"q", "k", "v", "o", "lse"}),
                     .flops = 4.0 * static_cast<double>(s.Hq * s.D) * pairs};
  }

  std::string shape(const CaseSpec& spec) const override {
    const Shape s = shape_of(spec);
    const std::string entry = spec.params.at("entry");
    if (s.entry == kGenerate) {
      return fmt::format("generate prompt={} new={} tree={}", spec.params.at("n_prompt").get<int>(),
                         spec.params.at("max_new").get<int>(),
                         spec.params.at("max_nodes").get<int>());
    }
    std::string text = fmt::format("{} B={} N={}", entry, s.B(), s.largest);
    if (s.entry == kAccept) return text + fmt::format(" V={}", s.V);
    if (s.entry == kCompact) return text + fmt::format(" row={}B", s.row_bytes);
    const std::int64_t P =
        s.items.empty()
            ? 0
            : std::max_element(s.items.begin(), s.items.end(), [](const Item& a, const Item& b) {
                return a.P < b.P;
              })->P;
    text += fmt::format(" P={}", P);
    if (s.entry != kAttention) return text;
    return text + fmt::format(" Hq={} Hkv={} D={}{}", s.Hq, s.Hkv, s.D,
                              s.dtype == ASSAY_F32 ? "" : " bf16");
  }
};

}  // namespace assay::dflash_verify

ASSAY_CHALLENGE(dflash_verify, dflash_verify::DflashVerify)
