// The steps of a case.
#include <fmt/format.h>

#include <algorithm>

#include "assay/size.h"
#include "trusted.h"

namespace assay::kv_cache {
namespace {

class KvCache final : public Challenge {
 public:
  std::optional<DrawnCase> drawn(const nlohmann::json& draw) const override {
    const std::int64_t n_kv = draw.at("n_kv"), group = draw.at("group"), steps = draw.at("steps"),
                       sequences = draw.at("sequences"), D = draw.at("D");
    nlohmann::json config{{"n_q", n_kv * group}};
    for (const char* name : {"layers", "n_kv", "D", "max_seqs", "max_tokens", "max_len", "window",
                             "sinks", "Dv", "dtype"}) {
      if (!draw.at(name).is_null()) config[name] = draw.at(name);
    }
    if (draw.at("max_seqs") == "sequences") config["max_seqs"] = sequences;
    if (!config.contains("window")) config.erase("sinks");
    constexpr std::int64_t kMostElements = 1 << 21;
    const std::int64_t tokens = 20 + 12 * steps, rows = 10 + 4 * steps;
    if (tokens * n_kv * group * D > kMostElements) return std::nullopt;
    return DrawnCase{{{"config", config},
                      {"random",
                       {{"steps", steps},
                        {"sequences", sequences},
                        {"tokens", tokens},
                        {"rows", rows},
                        {"defragment", draw.at("defragment")}}}},
                     0};
  }

  CasePlan plan(const CaseSpec& spec) const override {
    const Script s = compile_script(spec, 0);
    const Dtype dtype = s.params.element_bytes == 2 ? Dtype::bf16 : Dtype::f32;
    constexpr auto kWide = static_cast<std::int64_t>(sizeof(Op) / sizeof(std::int64_t));
    constexpr auto kResultWide = static_cast<std::int64_t>(sizeof(Result) / sizeof(std::int64_t));
    const auto n_ops = static_cast<std::int64_t>(s.ops.size());
    const auto pool = static_cast<std::int64_t>(s.pool.size());
    CasePlan plan;
    plan.set_params(s.params);
    plan.add(kOps,
             {.name = "ops", .dtype = Dtype::i64, .shape = {n_ops, kWide}, .role = Role::input});
    plan.add(kPool, {.name = "pool", .dtype = Dtype::i64, .shape = {pool}, .role = Role::input});
    // A cache must copy what is appended: later phases find zeros. In timed cases the first phase's
    // arrays stay, for keeping pointers to them gains no time.
    const int until = spec.group == CaseGroup::timed || s.params.phases == 1 ? -1 : 0;
    plan.add(kK,
             {.name = "k", .dtype = dtype, .shape = {s.k[0]}, .role = Role::input, .until = until});
    plan.add(kV,
             {.name = "v", .dtype = dtype, .shape = {s.v[0]}, .role = Role::input, .until = until});
    plan.add(kQ, {.name = "q", .dtype = dtype, .shape = {s.q[0]}, .role = Role::input});
    plan.add(kLaterK, {.name = "later_k",
                       .dtype = dtype,
                       .shape = {s.k[1]},
                       .role = Role::input,
                       .phase = 1,
                       .until = 1});
    plan.add(kLaterV, {.name = "later_v",
                       .dtype = dtype,
                       .shape = {s.v[1]},
                       .role = Role::input,
                       .phase = 1,
                       .until = 1});
    plan.add(
        kLaterQ,
        {.name = "later_q", .dtype = dtype, .shape = {s.q[1]}, .role = Role::input, .phase = 1});
    // Attention comes before the third phase; the adapter's results come until the end.
    int due = s.params.phases > 1 ? 1 : 0;
    const auto add_output = [&](Handle handle, const char* name, Dtype type, std::int64_t size) {
      plan.add(handle,
               {.name = name, .dtype = type, .shape = {size}, .role = Role::output, .due = due});
    };
    add_output(kO, "o", dtype, s.o);
    add_output(kLse, "lse", Dtype::f32, s.lse);
    due = std::max(due, static_cast<int>(s.last_read));
    add_output(kReadK, "read_k", dtype, s.read_k);
    add_output(kReadV, "read_v", dtype, s.read_v);
    plan.add(kResults, {.name = "results",
                        .dtype = Dtype::i64,
                        .shape = {n_ops, kResultWide},
                        .role = Role::output,
                        .due = s.params.phases - 1});
    plan.keep_on_host({"ops", "pool", "results"});
    plan.phases = s.params.phases;
    plan.timed_phase = s.params.phases > 1 ? 1 : 0;
    if (spec.group == CaseGroup::timed) require_one_attention(spec, s, plan.timed_phase);
    plan.aligned = spec.group == CaseGroup::timed;
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    generate_inputs(spec, seeds.inputs, buffers);
  }

  std::unique_ptr<Reference> reference(const CaseSpec&, const CasePlan& plan,
                                       BufferViews buffers) const override {
    return make_reference(params_of(plan), buffers);
  }

  CheckResult check(const CaseSpec& spec, const CasePlan& plan, const Reference& reference,
                    BufferViews buffers, const CallbackServer*) const override {
    return check_outputs(spec, params_of(plan), static_cast<const KvReference&>(reference),
                         buffers);
  }

  std::optional<nlohmann::json> recorded(const RecordedCall& call) const override {
    return recorded_params(call);
  }
  bool adopt(const CaseSpec& spec, const CasePlan&, BufferViews buffers) const override {
    return adopt_inputs(spec, buffers);
  }

  // The adapter counts what the cache holds, in memory that the submission can overwrite. In cases
  // that measure memory, the last phase only asks, reads a few tokens, frees and destroys, so its
  // peak is what was held.
  std::string hold_to_account(const CaseSpec& spec, const CasePlan& plan,
                              const MemoryAccount& account,
                              std::vector<Metric>& metrics) const override {
    if (plan.phases < 2) return "";
    const auto shown = static_cast<double>(account.last_phase_peak);
    hold_metrics(static_cast<double>(account.peak), shown, metrics);
    const auto limit = spec.params.find("held_limit");
    if (limit == spec.params.end() || shown <= limit->get<double>()) return "";
    return fmt::format("holds {:.1f} MB beyond what may come from elsewhere, {:.1f} MB are enough",
                       shown * 1e-6, limit->get<double>() * 1e-6);
  }

  // Each attention reads the keys and values that its rows see, once. Appended rows are read and,
  // in a cache that is not quantised, written. Other traffic is negligible.
  std::optional<LeastWork> least_work(const CaseSpec& spec, const CasePlan& plan) const override {
    const Script script = compile_script(spec, 1);
    Model model(script.params);
    LeastWork work{.launches = 0};
    for (const Op& op : script.ops) {
      if (op.kind == kAttend && op.phase == plan.timed_phase) {
        add_attention(script, op, model, work);
        ++work.launches;
      }
      if (op.kind == kAppend && op.phase == plan.timed_phase) {
        add_append(script, op, work);
        ++work.launches;
      }
      model.apply(op, script.pool.data());
    }
    return work;
  }

  std::string shape(const CaseSpec& spec) const override {
    if (spec.params.contains("shape")) return spec.params.at("shape");
    const Script s = compile_script(spec, 0);
    const kvc_config& c = s.params.config[0];
    std::string text = fmt::format("layers={} heads={}/{} D={}", c.n_layers, c.n_q, c.n_kv, c.D);
    if (c.Dv != c.D) text += fmt::format("/{}", c.Dv);
    if (c.window > 0) text += fmt::format(" window={}", c.window);
    if (c.quant != 0) text += fmt::format(" int{}", c.quant);
    return text + (c.dtype == ASSAY_BF16 ? " bf16" : "");
  }

 private:
  // Outputs are due when the phase ends: of two attentions in it, a submission could note the first
  // and read the cache once for both.
  static void require_one_attention(const CaseSpec& spec, const Script& s, int timed_phase) {
    const auto timed = std::ranges::count_if(
        s.ops, [&](const Op& op) { return is_attention(op.kind) && op.phase == timed_phase; });
    if (timed > 1)
      throw ChallengeError(fmt::format(
          "case {}: {} attentions in its timed phase, which may hold one", spec.name, timed));
  }

  static void add_append(const Script& script, const Op& op, LeastWork& work) {
    const kvc_config& c = script.params.config[op.cache];
    const std::int64_t* cu = script.pool.data() + op.pool + op.n;
    const double row = script.params.element_bytes * (c.D + c.Dv) * c.n_kv;
    work.bytes += (c.quant == 0 ? 2 : 1) * row * static_cast<double>(cu[op.n]);
  }

  static void hold_metrics(double peak, double last_peak, std::vector<Metric>& metrics) {
    const auto find = [&](std::string_view name) {
      const auto found = std::ranges::find(metrics, name, &Metric::name);
      return found == metrics.end() ? nullptr : &found->value;
    };
    double *const held = find("held_bytes"), *const relative = find("held_over_needed"),
                  *const allocated = find("allocated_over_needed");
    if (held == nullptr) return;
    const double needed = relative != nullptr ? *held / *relative : 0;
    *held = std::max(*held, last_peak);
    if (relative != nullptr) *relative = std::max(*relative, last_peak / needed);
    if (allocated != nullptr) *allocated = std::max(*allocated, peak / needed);
  }

  // Tokens that several entries share are read once, and those that no row sees not at all.
  static void add_attention(const Script& script, const Op& op, const Model& model,
                            LeastWork& work) {
    const kvc_config& c = script.params.config[op.cache];
    const std::int64_t *slots = script.pool.data() + op.pool, *cu = slots + op.n;
    DistinctTokens tokens;
    double pairs = 0;
    for (std::int64_t b = 0; b < op.n; ++b) {
      const History& history = model.sequence(slots[b]).layers[to_size(op.layer)];
      std::int64_t first = history.length;  // that any row sees, but for sinks
      for (std::int64_t end = history.length - (cu[b + 1] - cu[b]) + 1; end <= history.length;
           ++end) {
        const std::int64_t begin = first_visible(c, end);
        pairs += static_cast<double>(end - begin + std::min<std::int64_t>(c.sinks, begin));
        first = std::min(first, begin);
      }
      tokens.add(history, first, history.length);
      tokens.add(history, 0, std::min<std::int64_t>(c.sinks, first));
    }
    const double row = c.D + c.Dv;
    const double stored = c.quant == 0 ? script.params.element_bytes : c.quant / 8.;
    work.bytes += row * (stored * c.n_kv * static_cast<double>(tokens.count()) +
                         script.params.element_bytes * c.n_q * static_cast<double>(cu[op.n]));
    work.flops += 2 * row * c.n_q * pairs;
  }

  static const Params& params_of(const CasePlan& plan) {
    return *reinterpret_cast<const Params*>(plan.params.data());
  }
};

}  // namespace
}  // namespace assay::kv_cache

ASSAY_CHALLENGE(kv_cache, kv_cache::KvCache)
