// Turns recorded calls into cases: masks, attention, greedy acceptance and compaction. Any number
// may have any value until it is checked.
#include "shared/recorded.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "assay/size.h"
#include "trusted.h"

namespace assay::dflash_verify {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostItems = 1 << 12, kMostNodes = 1 << 14, kMostRows = 1 << 13;
constexpr std::int64_t kMostElements = 1 << 24;
constexpr std::int64_t kMostPrefix = std::int64_t{1} << 40;  // no array has this size, only numbers
                                                             // depend on it

// A tree in the terms of a case.
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

// `prefixes`: their handle, or -1 if the function has none.
std::optional<Batch> batch_of(const RecordedCall& call, std::int32_t B, int prefixes, int cu_at,
                              int parent_at) {
  if (B < 0 || B > kMostItems) return std::nullopt;
  const auto cu = recorded_values<std::int64_t>(call, cu_at, std::int64_t{B} + 1);
  if (!cu || cu->front() != 0 || !std::ranges::is_sorted(*cu) || cu->back() > kMostNodes)
    return std::nullopt;
  Batch batch;
  batch.nodes = cu->back();
  const auto parents = recorded_values<std::int32_t>(call, parent_at, batch.nodes);
  std::optional<std::vector<std::int64_t>> P(std::in_place, to_size(B), 1);
  if (prefixes >= 0) P = recorded_values<std::int64_t>(call, prefixes, B);
  if (!parents || !P) return std::nullopt;
  for (std::size_t b = 0; b < P->size(); ++b) {
    const auto first = to_size((*cu)[b]), end = to_size((*cu)[b + 1]);
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
  const auto parents = recorded_values<std::int32_t>(call, kParent, p.n);
  const auto item = parents ? item_of(p.P, *parents) : std::nullopt;
  if (!item || (p.P + p.n) * (p.P + p.n) > kMostElements || !has(call, kM, 1)) return std::nullopt;
  return json{{"entry", "full_mask"}, {"items", {*item}}};
}

// Greedy only: the uniforms of the other modes have strides that a case cannot express.
std::optional<json> accept_params(const RecordedCall& call, const Params& p) {
  using namespace accept;
  if (p.null_sampling == 0 || p.V < 1 || p.V > kMostElements) return std::nullopt;
  const auto batch = batch_of(call, p.B, -1, kCu, kParent);
  if (!batch) return std::nullopt;
  const std::int64_t n = batch->nodes;
  if ((n + p.B) * p.V > kMostElements) return std::nullopt;
  const auto tokens = recorded_values<std::int32_t>(call, kToken, n);
  if (!tokens || !has(call, kRootLogits, p.B) || !has(call, kNodeLogits, n) ||
      !has(call, kAccNode, n) || !has(call, kNAcc, p.B) || !has(call, kBonus, p.B))
    return std::nullopt;
  if (std::ranges::any_of(*tokens, [&](auto t) { return t < 0 || t >= p.V; })) return std::nullopt;
  const bool no_eos = !has(call, kEos, 1), no_budget = !has(call, kBudget, 1);
  if (!no_budget) {
    const auto budgets = recorded_values<std::int32_t>(call, kBudget, p.B);
    if (!budgets || std::ranges::any_of(*budgets, [](auto budget) { return budget < 0; }))
      return std::nullopt;
  }
  return json{{"entry", "accept"},
              {"V", p.V},
              {"items", batch->items},
              {"null_eos", no_eos},
              {"null_budget", no_budget}};
}

// Total size of an array in pieces.
std::int64_t bytes_of(const RecordedCall& call, int handle) {
  std::size_t bytes = 0;
  for (const RecordedCall::Array& array : call.arrays)
    bytes += array.handle == handle ? array.bytes.size() : 0;
  return static_cast<std::int64_t>(bytes);
}

std::optional<json> attention_params(const RecordedCall& call, const Params& params) {
  using namespace attention;
  constexpr double kMostProducts = 1 << 29;
  constexpr std::int64_t kMostHeads = 1 << 10, kMostWidth = 256;
  const fa_params& p = params.fa;
  const auto within = [](std::int64_t n, std::int64_t most) { return n >= 1 && n <= most; };
  if (p.size != sizeof(fa_params) || (p.dtype != ASSAY_F32 && p.dtype != ASSAY_BF16) ||
      p.math != 0 || p.B < 0 || p.B > kMostItems || !within(p.Hq, kMostHeads) ||
      !within(p.Hkv, kMostHeads) || p.Hq % p.Hkv != 0 || !within(p.D, kMostWidth) || p.Dv != p.D ||
      !std::isfinite(p.scale))
    return std::nullopt;
  const auto batch = batch_of(call, static_cast<std::int32_t>(p.B), kP, kCu, kParent);
  if (!batch) return std::nullopt;
  double pairs = 0;
  std::int64_t rows = 0;
  for (const json& item : batch->items) {
    const std::int64_t P = item.at("P"), nodes = std::ssize(item.at("parent"));
    if (P > kMostElements || (rows += P + nodes) > kMostElements) return std::nullopt;
    pairs += static_cast<double>(P + nodes) * static_cast<double>(nodes);
  }
  if (pairs * static_cast<double>(p.Hq * p.D) > kMostProducts ||
      (rows + batch->nodes) * p.Hq * p.D > kMostElements)
    return std::nullopt;
  const std::int64_t element = p.dtype == ASSAY_F32 ? 4 : 2, row_bytes = p.Hkv * p.D * element;
  const std::int64_t n = batch->nodes;
  if (!has(call, kQ, n) || !has(call, kO, n) || call.find(kLse) == nullptr ||
      bytes_of(call, kQ) != n * p.Hq * p.D * element || bytes_of(call, kK) != rows * row_bytes ||
      bytes_of(call, kV) != rows * row_bytes)
    return std::nullopt;
  return json{{"entry", "attention"},
              {"items", batch->items},
              {"Hq", p.Hq},
              {"Hkv", p.Hkv},
              {"D", p.D},
              {"scale", p.scale},
              {"dtype", p.dtype == ASSAY_F32 ? "f32" : "bf16"},
              {"null_lse", call.find(kLse)->null}};
}

std::optional<json> compact_params(const RecordedCall& call, const Params& p) {
  using namespace compact;
  constexpr std::int64_t kMostRowBytes = 1 << 20, kMostCaches = 1 << 10;
  if (p.B < 0 || p.B > kMostItems || p.row_bytes < 0 || p.row_bytes > kMostRowBytes ||
      p.caches < 1 || p.caches > kMostCaches)
    return std::nullopt;
  const auto cu = recorded_values<std::int64_t>(call, kCu, std::int64_t{p.B} + 1);
  const auto P = recorded_values<std::int64_t>(call, kP, p.B);
  if (!cu || !P || cu->front() != 0 || !std::ranges::is_sorted(*cu) || cu->back() > kMostNodes)
    return std::nullopt;
  const auto acc_node = recorded_values<std::int32_t>(call, kAccNode, cu->back());
  const auto n_acc = recorded_values<std::int32_t>(call, kNAcc, p.B);
  if (!acc_node || !n_acc) return std::nullopt;
  json items = json::array();
  std::int64_t bytes = 0;
  for (std::size_t b = 0; b < P->size(); ++b) {
    const std::int64_t n = (*cu)[b + 1] - (*cu)[b], kept = (*n_acc)[b];
    if ((*P)[b] < 1 || (*P)[b] > kMostElements || kept < 0 || kept > n) return std::nullopt;
    for (std::int64_t j = 0; j < kept; ++j) {
      const auto at = to_size((*cu)[b] + j);
      const std::int32_t least = j == 0 ? 0 : (*acc_node)[at - 1] + 1;
      if ((*acc_node)[at] < least || (*acc_node)[at] >= n) return std::nullopt;
    }
    items.push_back({{"P", (*P)[b]}, {"n", n}});
    bytes += p.caches * ((*P)[b] + n) * p.row_bytes;
    if (bytes > kMostElements) return std::nullopt;
  }
  if (bytes_of(call, kKv) != bytes) return std::nullopt;
  return json{{"entry", "compact"},
              {"items", std::move(items)},
              {"row_bytes", p.row_bytes},
              {"caches", p.caches}};
}

}  // namespace

std::optional<json> recorded_params(const RecordedCall& call) {
  const auto params = call.params_as<Params>();
  if (!params) return std::nullopt;
  switch (call.entry) {
    case kMask: return mask_params(call, *params);
    case kFullMask: return full_mask_params(call, *params);
    case kAttention: return attention_params(call, *params);
    case kAccept: return accept_params(call, *params);
    case kCompact: return compact_params(call, *params);
    default: return std::nullopt;
  }
}

// The adapter finds an item's rows by where the previous item's end.
bool adopt_inputs(const Shape& s, BufferViews buffers) {
  if (s.entry == kAttention) {
    std::ranges::copy(s.rows, buffers[attention::kRows].as<std::int64_t>());
    const auto largest = [&](int handle) {
      return largest_magnitude(buffers[to_size(handle)], s.dtype != ASSAY_F32);
    };
    return attention_stays_finite(largest(attention::kQ), largest(attention::kK),
                                  largest(attention::kV), static_cast<double>(s.scale), s.D);
  }
  if (s.entry == kCompact) {
    std::ranges::copy(cache_rows(s), buffers[compact::kRows].as<std::int64_t>());
    return true;
  }
  if (s.entry != kAccept) return true;
  // NaN must be refused if it is read, and which rows are read depends on the answer.
  for (const int handle : {accept::kRootLogits, accept::kNodeLogits}) {
    const auto logits = buffers[to_size(handle)].span<float>();
    if (std::ranges::any_of(logits, [](float x) { return std::isnan(x); })) return false;
  }
  return true;
}

}  // namespace assay::dflash_verify
