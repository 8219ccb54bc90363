#include "work.h"

#include <functional>
#include <initializer_list>
#include <map>
#include <string_view>

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

// Rows of x and dy are read, dx is written; the mean and the reciprocal root per row come from the cache.
std::optional<Work> layer_norm(const CaseSpec& spec, const CasePlan& plan) {
  const double statistics = 8 * spec.params.at("rows").get<double>();
  return Work{bytes_of(plan, {"x", "gamma", "dy", "dx", "dgamma", "dbeta"}) + statistics, 0};
}

std::optional<Work> topk(const CaseSpec&, const CasePlan& plan) {
  return Work{bytes_of(plan, {"logits", "idx", "prob", "lse", "count"}), 0};
}

// Of dv_attention: every node sees the prefix, its ancestors and itself; only the prefix is counted.
std::optional<Work> dflash(const CaseSpec& spec, const CasePlan& plan) {
  if (spec.params.at("entry") != "attention") return {};
  const double pairs_per_flop = 4 * spec.params.at("Hq").get<double>() * spec.params.at("D").get<double>();
  double pairs = 0;
  for (const auto& item : spec.params.at("items")) {
    pairs += item.at("P").get<double>() * item.at("n").get<double>();
  }
  return Work{bytes_of(plan, {"q", "k", "v", "o", "lse"}), pairs * pairs_per_flop};
}

}  // namespace

std::optional<Work> work_of(const std::string& challenge, const CaseSpec& spec, const CasePlan& plan) {
  using Function = std::optional<Work> (*)(const CaseSpec&, const CasePlan&);
  static const std::map<std::string, Function> functions = {
      {"layer_norm_backward", &layer_norm},
      {"fused_softmax_topk", &topk},
      {"dflash_verify", &dflash},
  };
  const auto found = functions.find(challenge);
  return found == functions.end() ? std::nullopt : found->second(spec, plan);
}

}  // namespace assay
