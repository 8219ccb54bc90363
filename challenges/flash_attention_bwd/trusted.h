// What the trusted parts of this challenge share.
#pragma once

#include <memory>
#include <vector>

#include "../shared/attention.h"
#include "flash_backward.h"

namespace assay::flash_attention_bwd {

void generate_inputs(const CaseSpec&, const attention::Problem&, std::uint64_t seed, BufferViews);

// One head's rows of one gradient: fp64, condition scales, and what a plain implementation in the case's
// dtype gets. `factor`, per row, multiplies eps32 in the bound.
struct Gradient {
  attention::RowsD expected, scale, plain;
  std::vector<double> factor;

  void resize(std::int64_t rows, std::int64_t D);
};

struct BackwardReference final : Reference {
  std::vector<Gradient> dq;      // [B * Hq]
  std::vector<Gradient> dk, dv;  // [B * Hkv]
};

std::unique_ptr<BackwardReference> make_reference(const attention::Problem&, BufferViews);

CheckResult check_outputs(const attention::Problem&, const BackwardReference&, BufferViews);

}  // namespace assay::flash_attention_bwd
