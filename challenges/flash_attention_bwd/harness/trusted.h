// Shared by the trusted parts of this challenge.
#pragma once

#include <memory>
#include <vector>

#include "../worker/call.h"
#include "shared/attention.h"

namespace assay::flash_attention_bwd {

// Whether the case's o and lse come from the submission's own fa_forward.
inline bool is_chained(const CaseSpec& spec) { return spec.params.value("chained", false); }

void generate_inputs(const CaseSpec&, const attention::Problem&, std::uint64_t seed, BufferViews);

// One head's rows of one gradient, or of o or lse: fp64 values, condition scales, and the result of
// a plain implementation in the case's dtype. `factor`, per row, multiplies eps32 in the bound.
struct Gradient {
  attention::RowsD expected, scale, plain;
  std::vector<double> factor;

  void resize(std::int64_t rows, std::int64_t D);
};

struct BackwardReference final : Reference {
  std::vector<Gradient> dq;      // [B * Hq]
  std::vector<Gradient> dk, dv;  // [B * Hkv]
  std::vector<Gradient> dbias;   // one, with all rows of the bias, if there is a bias
  std::vector<Gradient> o, lse;  // [B * Hq], chained cases only
};

// Computes o and lse of the inputs by fp64 attention, rounded once, into kO and kLse.
void forward(const attention::Problem&, BufferViews);

std::unique_ptr<BackwardReference> make_reference(const attention::Problem&, bool chained,
                                                  BufferViews);

CheckResult check_outputs(const attention::Problem&, const BackwardReference&, BufferViews);

}  // namespace assay::flash_attention_bwd
