// Shared by the trusted parts of this challenge.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../worker/call.h"
#include "assay/challenge.h"

namespace assay::fused_softmax_topk {

// A case's params in spec.json. With `pad` beyond kMostPadding the rows are in a sparse buffer,
// with nothing between them.
inline constexpr std::int64_t kMostPadding = 1 << 16;

struct Shape {
  std::int64_t rows = 0, V = 0, ld = 0;
  std::int32_t K = 0, dtype = ASSAY_F32;
  float temperature = 1, top_p = 0;
  Entry entry = kTopK;
  bool null_lse = false;

  bool sparse() const { return ld - V > kMostPadding && rows > 1 && V > 0; }
  // Elements of the buffer. A sparse one ends with its last row.
  std::int64_t extent() const { return sparse() ? (rows - 1) * ld + V : rows * ld; }
  std::int64_t filled_columns() const { return sparse() ? V : ld; }
};

Shape shape_of(const CaseSpec&);

// A row widened to float. `scratch` is used for bf16.
const float* row_values(const Shape&, const void* logits, std::int64_t row,
                        std::vector<float>& scratch);

void generate(const CaseSpec&, std::uint64_t seed, BufferViews);

// The required outputs of a row, O(K) per row.
struct RowReference {
  bool poisoned = false;  // NaN or +inf in the row
  double lse = 0;         // fp64
  double log_sum = 0;     // lse - max / T, which lse alone does not give if it is large
  float log_sum32 = 0;    // the same by a plain fp32 implementation
  float max = 0;
};

struct TopKReference final : Reference {
  std::vector<RowReference> rows;
  std::vector<std::int32_t> idx;  // [rows, K], -1 if there is none
};

std::unique_ptr<TopKReference> make_reference(const Shape&, const void* logits);

CheckResult check_outputs(const CaseSpec&, const TopKReference&, BufferViews);

}  // namespace assay::fused_softmax_topk
