// An attention case for code that does not know its challenge: buffers by name, and the fa_params
// that every attention challenge puts first in its params.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "assay/attention.h"
#include "assay/challenge.h"

namespace assay {

inline int handle_of(const CasePlan& plan, std::string_view name) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

inline std::optional<fa_params> attention_params(const CasePlan& plan) {
  fa_params p;
  if (plan.params.size() < sizeof p) return {};
  std::memcpy(&p, plan.params.data(), sizeof p);
  if (p.size != sizeof p) return {};
  return p;
}

// The number of pairs of a query and a key that it sees, for one head of one item, without a
// window.
inline double visible_pairs(const fa_params& p) {
  if (p.causal == 0) return static_cast<double>(p.Nq) * static_cast<double>(p.Nk);
  double pairs = 0;
  for (std::int64_t i = 0; i < p.Nq; ++i) {
    pairs += static_cast<double>(std::clamp<std::int64_t>(i + p.Nk - p.Nq + 1, 0, p.Nk));
  }
  return pairs;
}

}  // namespace assay
