#include "work.h"

#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <string_view>

#include "peers/attention_case.h"
#include "ternary_training/call.h"
#if __has_include("kv_cache/trusted.h")
#include "kv_cache/trusted.h"
#endif

namespace assay {
namespace {

double bytes_of(const CasePlan& plan, std::initializer_list<std::string_view> names) {
  double sum = 0;
  for (const BufferPlan& b : plan.buffers) {
    for (const std::string_view name : names) {
      if (b.name == name && !b.null) sum += static_cast<double>(b.bytes());
    }
  }
  return sum;
}

// Rows of x and dy are read, dx is written; the mean and the reciprocal root per row come from the
// cache.
std::optional<Work> layer_norm(const CaseSpec& spec, const CasePlan& plan) {
  const double statistics = 8 * spec.params.at("rows").get<double>();
  return Work{bytes_of(plan, {"x", "gamma", "dy", "dx", "dgamma", "dbeta"}) + statistics, 0};
}

std::optional<Work> topk(const CaseSpec&, const CasePlan& plan) {
  return Work{bytes_of(plan, {"logits", "idx", "prob", "lse", "count"}), 0};
}

// Of dv_attention: every node sees the prefix, its ancestors and itself; only the prefix is
// counted.
std::optional<Work> dflash(const CaseSpec& spec, const CasePlan& plan) {
  if (spec.params.at("entry") != "attention") return {};
  const double pairs_per_flop =
      4 * spec.params.at("Hq").get<double>() * spec.params.at("D").get<double>();
  double pairs = 0;
  for (const auto& item : spec.params.at("items")) {
    pairs += item.at("P").get<double>() * item.at("n").get<double>();
  }
  return Work{bytes_of(plan, {"q", "k", "v", "o", "lse"}), pairs * pairs_per_flop};
}

std::optional<Work> attention_forward(const CaseSpec&, const CasePlan& plan) {
  const auto p = attention_params(plan);
  if (!p) return {};
  const double heads = static_cast<double>(p->B * p->Hq);
  return Work{bytes_of(plan, {"q", "k", "v", "o", "lse"}),
              2.0 * static_cast<double>(p->D + p->Dv) * heads * visible_pairs(*p)};
}

// Five products: scores, their gradient, and those of q, k and v.
std::optional<Work> attention_backward(const CaseSpec&, const CasePlan& plan) {
  const auto p = attention_params(plan);
  if (!p) return {};
  const double heads = static_cast<double>(p->B * p->Hq);
  return Work{bytes_of(plan, {"q", "k", "v", "o", "dout", "lse", "dq", "dk", "dv"}),
              2.0 * static_cast<double>(3 * p->D + 2 * p->Dv) * heads * visible_pairs(*p)};
}

// Each step reads the logits of every beam once; the first has one beam an item. Where beams may end early
// there is no simple count.
std::optional<Work> beam(const CaseSpec& spec, const CasePlan&) {
  if (spec.params.at("eos").get<int>() >= 0) return {};
  const double steps = spec.params.at("max_new").get<double>();
  const double rows = spec.params.at("B").get<double>() * (1 + (steps - 1) * spec.params.at("K").get<double>());
  return Work{rows * spec.params.at("V").get<double>() * sizeof(float), 0};
}

// A linear layer and both its gradients; of training, those of every matrix for every token, and causal
// attention with its gradients.
std::optional<Work> ternary(const CaseSpec& spec, const CasePlan& plan) {
  namespace tern = ternary_training;
  tern::Params p;
  std::memcpy(&p, plan.params.data(), sizeof p);
  if (plan.entry == tern::kLinear) {
    return Work{0, 6.0 * static_cast<double>(p.M * p.rows * p.cols)};
  }
  if (plan.entry != tern::kTrain) return {};
  const tt_config& c = p.config;
  const double heads = c.hd * (2.0 * c.Hq + 2.0 * c.Hkv) * c.d, ff = 3.0 * c.ff * c.d;
  const double weights = c.L * (heads + ff) + static_cast<double>(c.V) * c.d;
  const double attention = 12.0 * c.L * c.Hq * c.hd * c.T / 2;
  return Work{0, spec.params.at("max_tokens").get<double>() * (6 * weights + attention)};
}

#if __has_include("kv_cache/trusted.h")
// Each attention reads the keys and values of its sequences once; nothing else moves much.
std::optional<Work> kv_cache_attention(const CaseSpec& spec, const CasePlan& plan) {
  namespace kv = kv_cache;
  const kv::Script script = kv::compile_script(spec, 1);
  kv::Model model(script.params);
  Work work;
  for (const kv::Op& op : script.ops) {
    if (op.kind == kv::kAttend && op.phase == plan.timed_phase) {
      const kvc_config& c = script.params.config[op.cache];
      const double row = c.D + (c.Dv > 0 ? c.Dv : c.D);
      const std::int64_t *slots = script.pool.data() + op.pool, *cu = slots + op.n;
      for (std::int64_t b = 0; b < op.n; ++b) {
        const auto length =
            model.sequence(slots[b]).layers[static_cast<std::size_t>(op.layer)].length;
        const auto rows = static_cast<double>(cu[b + 1] - cu[b]),
                   keys = static_cast<double>(length);
        const double pairs = rows * keys - rows * (rows - 1) / 2;
        work.bytes += script.params.element_bytes * row * (keys * c.n_kv + rows * c.n_q);
        work.flops += 2 * row * c.n_q * pairs;
      }
    }
    model.apply(op, script.pool.data());
  }
  return work;
}
#endif

}  // namespace

std::optional<Work> work_of(const std::string& challenge, const CaseSpec& spec,
                            const CasePlan& plan) {
  using Function = std::optional<Work> (*)(const CaseSpec&, const CasePlan&);
  static const std::map<std::string, Function> functions = {
    {"beam_search", &beam},
    {"layer_norm_backward", &layer_norm},
    {"fused_softmax_topk", &topk},
    {"dflash_verify", &dflash},
    {"flash_attention_fwd", &attention_forward},
    {"flash_attention_bwd", &attention_backward},
    {"ternary_training", &ternary},
#if __has_include("kv_cache/trusted.h")
    {"kv_cache", &kv_cache_attention},
#endif
  };
  const auto found = functions.find(challenge);
  return found == functions.end() ? std::nullopt : found->second(spec, plan);
}

}  // namespace assay
