// Shared by the trusted parts of this challenge.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../worker/call.h"
#include "assay/challenge.h"

namespace assay::layer_norm_backward {

// A case's params in spec.json.
struct Shape {
  std::int64_t rows = 0, D = 0;
  std::int32_t dtype = ASSAY_F32;
  float eps = 1e-5f;
  Mode mode = kPlain;
};

Shape shape_of(const CaseSpec&);

void generate(const CaseSpec&, std::uint64_t seed, BufferViews);

// Per-row and per-column values in fp64, and the same from a plain fp32 implementation.
struct Gradients final : Reference {
  std::vector<double> mean, rstd;                 // [rows]
  std::vector<double> dgamma, dbeta;              // [D]
  std::vector<double> dgamma_scale, dbeta_scale;  // [D], condition scales
  std::vector<float> mean32, rstd32;              // [rows]
  std::vector<double> dgamma32, dbeta32;          // [D]
};

std::unique_ptr<Gradients> make_reference(const Shape&, BufferViews);

// One row of dx and y, in fp64 and fp32, with condition scales; all of length D.
struct RowResult {
  std::vector<float> x, dy, dres;                   // room for widened bf16 inputs
  std::vector<double> got, expected, plain, scale;  // got: the submission's row
  explicit RowResult(std::int64_t D);
};

// Row r of buffer `handle`; bf16 is widened into `scratch`, which has room for it.
const float* row_values(const Shape&, BufferViews, int handle, std::int64_t r,
                        std::vector<float>& scratch);

void dx_row(const Shape&, const Gradients&, BufferViews, std::int64_t r, RowResult&);
void y_row(const Shape&, const Gradients&, BufferViews, std::int64_t r, RowResult&);

CheckResult check_outputs(const CaseSpec&, const Gradients&, BufferViews);

// Rounding errors of the mean shift every xhat of a row by about eps32 (1 + |mean| rstd); condition
// scales include this share of that shift.
inline constexpr double kMeanShare = 0.125;

}  // namespace assay::layer_norm_backward
