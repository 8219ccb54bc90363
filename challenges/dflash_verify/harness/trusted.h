// Shared by the trusted parts of this challenge: the terms of spec.json, the reference and the
// steps of a case.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../worker/call.h"
#include "assay/challenge.h"

namespace assay::dflash_verify {

// One tree of a batch. `script` is its object in spec.json: explicit tokens and greedy choices, or
// what to draw at random.
struct Item {
  std::int64_t P = 1, n = 0;
  const nlohmann::json* script = nullptr;
};

// A case's params in spec.json. An item's `offset` is added to all its logits.
struct Shape {
  Entry entry = kMask;
  std::int32_t V = 0, dtype = ASSAY_F32, sampling = DV_GREEDY;
  std::int64_t Hq = 0, Hkv = 0, D = 0, ldm = 0, row_bytes = 0;
  std::int32_t caches = 1;
  float scale = 0, temperature = 1;
  std::vector<Item> items;
  std::vector<std::int64_t> cu{0};    // nodes before each item
  std::vector<std::int64_t> rows{0};  // prefix and node rows before each item
  std::int64_t largest = 0;           // the most nodes of an item

  std::int64_t B() const { return static_cast<std::int64_t>(items.size()); }
  std::int64_t nodes() const { return cu.back(); }
  // Strides of the uniforms: a step per token and a try per child, plus one more of each.
  std::int64_t tries() const { return largest + 1; }
};

Shape shape_of(const CaseSpec&);

// The rows before each cache, then the total: one cache per item and copy, items outermost.
std::vector<std::int64_t> cache_rows(const Shape&);

// The params of a case that makes a recorded call, and whether its inputs keep the task's promises.
std::optional<nlohmann::json> recorded_params(const RecordedCall&);
bool adopt_inputs(const Shape&, BufferViews);

void generate_inputs(const CaseSpec&, const Shape&, const Seeds&, BufferViews);

// The required outputs. Only the part for the case's entry is filled.
struct DflashReference final : Reference {
  // mask
  std::vector<std::uint64_t> bits;
  std::vector<std::int32_t> depth;
  std::vector<std::int64_t> pos;
  // full_mask
  std::vector<std::uint8_t> sees;  // [n, n] among the nodes
  // attention, [nodes, Hq, D] and [nodes, Hq]; plain: from a plain fp32 (or bf16) implementation
  std::vector<double> o, plain_o, scale_o, lse, plain_lse, conditioning;
  std::vector<std::int64_t> keys;  // visible to each node
  // accept
  std::vector<std::int32_t> acc_node, n_acc, bonus;
  std::vector<char> unclear;  // per item: a sampling decision within rounding of its threshold
  // compact: the rows [0, P + n_acc) of every cache, concatenated
  std::vector<std::byte> kept;
  // generate
  std::vector<std::int32_t> text;           // the tokens to emit
  std::int64_t verify_calls = 0, rows = 0;  // the fewest possible
};

std::unique_ptr<DflashReference> make_reference(const CaseSpec&, const Shape&, BufferViews);

// Parts of the reference in separate functions.
void attention_reference(const Shape&, BufferViews, DflashReference&);
void accept_reference(const Shape&, BufferViews, DflashReference&);

CheckResult check_outputs(const CaseSpec&, const Shape&, const DflashReference&, BufferViews,
                          const CallbackServer*);

}  // namespace assay::dflash_verify
