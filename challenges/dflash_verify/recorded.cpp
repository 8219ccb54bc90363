// Recorded calls as cases: masks, and greedy acceptance. Every number may be anything until it was
// looked at.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "trusted.h"

namespace assay::dflash_verify {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostItems = 1 << 12, kMostNodes = 1 << 14, kMostRows = 1 << 13;
constexpr std::int64_t kMostElements = 1 << 24;
constexpr std::int64_t kMostPrefix = std::int64_t{1} << 40;  // only numbers depend on it, no array

template <class T>
std::optional<std::vector<T>> values(const RecordedCall& call, int handle, std::int64_t count) {
  const RecordedCall::Array* const array = call.find(handle);
  std::vector<T> found(static_cast<std::size_t>(count));
  if (array == nullptr || array->bytes.size() != found.size() * sizeof(T)) return std::nullopt;
  if (!found.empty()) std::memcpy(found.data(), array->bytes.data(), array->bytes.size());
  return found;
}

// Whether the call names an array there, where it has to hold something.
bool has(const RecordedCall& call, int handle, std::int64_t elements) {
  const RecordedCall::Array* const array = call.find(handle);
  return array != nullptr && (elements == 0 || !array->null);
}

// A tree in the words of a case.
std::optional<json> item_of(std::int64_t P, std::span<const std::int32_t> parents) {
  if (P < 1 || P > kMostPrefix) return std::nullopt;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] < -1 || parents[i] >= static_cast<std::int64_t>(i)) return std::nullopt;
  }
  return json{{"P", P}, {"parent", std::vector<std::int32_t>(parents.begin(), parents.end())}};
}

struct Batch {
  json items = json::array();
  std::int64_t nodes = 0, largest = 0;
};

// `prefixes`: their handle, or -1 where the function has none.
std::optional<Batch> batch_of(const RecordedCall& call, std::int32_t B, int prefixes, int cu_at,
                              int parent_at) {
  if (B < 0 || B > kMostItems) return std::nullopt;
  const auto cu = values<std::int64_t>(call, cu_at, std::int64_t{B} + 1);
  if (!cu || cu->front() != 0 || !std::ranges::is_sorted(*cu) || cu->back() > kMostNodes)
    return std::nullopt;
  Batch batch;
  batch.nodes = cu->back();
  const auto parents = values<std::int32_t>(call, parent_at, batch.nodes);
  std::optional<std::vector<std::int64_t>> P(std::in_place, static_cast<std::size_t>(B), 1);
  if (prefixes >= 0) P = values<std::int64_t>(call, prefixes, B);
  if (!parents || !P) return std::nullopt;
  for (std::size_t b = 0; b < P->size(); ++b) {
    const auto first = static_cast<std::size_t>((*cu)[b]),
               end = static_cast<std::size_t>((*cu)[b + 1]);
    const auto item = item_of((*P)[b], std::span(*parents).subspan(first, end - first));
    if (!item) return std::nullopt;
    batch.items.push_back(*item);
    batch.largest = std::max(batch.largest, static_cast<std::int64_t>(end - first));
  }
  return batch;
}

std::optional<json> mask_params(const RecordedCall& call, const Params& p) {
  using namespace mask;
  const auto batch = batch_of(call, p.B, kP, kCu, kParent);
  if (!batch) return std::nullopt;
  const std::int64_t n = batch->nodes, words = (batch->largest + 63) / 64;
  if (p.ldm < words || p.ldm > kMostRows || n * p.ldm > kMostElements) return std::nullopt;
  if (!has(call, kBits, n * p.ldm) || !has(call, kDepth, n) || !has(call, kPos, n))
    return std::nullopt;
  return json{{"entry", "mask"}, {"items", batch->items}, {"pad_words", p.ldm - words}};
}

std::optional<json> full_mask_params(const RecordedCall& call, const Params& p) {
  using namespace full_mask;
  if (p.n < 0 || p.n > kMostRows || p.P < 1 || p.P > kMostRows) return std::nullopt;
  const auto parents = values<std::int32_t>(call, kParent, p.n);
  const auto item = parents ? item_of(p.P, *parents) : std::nullopt;
  if (!item || (p.P + p.n) * (p.P + p.n) > kMostElements || !has(call, kM, 1)) return std::nullopt;
  return json{{"entry", "full_mask"}, {"items", {*item}}};
}

// Greedy: the uniforms of the other modes lie at strides that a case does not have.
std::optional<json> accept_params(const RecordedCall& call, const Params& p) {
  using namespace accept;
  if (p.null_sampling == 0 || p.V < 1 || p.V > kMostElements) return std::nullopt;
  const auto batch = batch_of(call, p.B, -1, kCu, kParent);
  if (!batch) return std::nullopt;
  const std::int64_t n = batch->nodes;
  if ((n + p.B) * p.V > kMostElements) return std::nullopt;
  const auto tokens = values<std::int32_t>(call, kToken, n);
  if (!tokens || !has(call, kRootLogits, p.B) || !has(call, kNodeLogits, n) ||
      !has(call, kAccNode, n) || !has(call, kNAcc, p.B) || !has(call, kBonus, p.B))
    return std::nullopt;
  if (std::ranges::any_of(*tokens, [&](auto t) { return t < 0 || t >= p.V; })) return std::nullopt;
  const bool no_eos = !has(call, kEos, 1), no_budget = !has(call, kBudget, 1);
  if (!no_budget) {
    const auto budgets = values<std::int32_t>(call, kBudget, p.B);
    if (!budgets || std::ranges::any_of(*budgets, [](auto budget) { return budget < 0; }))
      return std::nullopt;
  }
  return json{{"entry", "accept"},
              {"V", p.V},
              {"items", batch->items},
              {"null_eos", no_eos},
              {"null_budget", no_budget}};
}

}  // namespace

std::optional<json> recorded_params(const RecordedCall& call) {
  const auto params = call.params_as<Params>();
  if (!params) return std::nullopt;
  switch (call.entry) {
    case kMask: return mask_params(call, *params);
    case kFullMask: return full_mask_params(call, *params);
    case kAccept: return accept_params(call, *params);
    default: return std::nullopt;
  }
}

// NaN has to be refused where it is read, and which rows are read depends on the answer.
bool adopt_inputs(const Shape& s, BufferViews buffers) {
  if (s.entry != kAccept) return true;
  for (const int handle : {accept::kRootLogits, accept::kNodeLogits}) {
    const auto logits = buffers[static_cast<std::size_t>(handle)].span<float>();
    if (std::ranges::any_of(logits, [](float x) { return std::isnan(x); })) return false;
  }
  return true;
}

}  // namespace assay::dflash_verify
