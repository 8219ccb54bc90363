// Inputs from the distributions that spec.json names.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "assay/error.h"
#include "assay/parallel.h"
#include "assay/random.h"
#include "assay/size.h"
#include "shared/drawn_rows.h"
#include "trusted.h"

namespace assay::layer_norm_backward {
namespace {

using nlohmann::json;

// Fills a matrix row by row from floats, rounded to the case's dtype.
template <class Row>
void fill_matrix(const Shape& s, const BufferView& view, Row row) {
  if (view.bytes == 0) return;
  const bool bf16 = s.dtype == ASSAY_BF16;
  parallel_for(s.rows, std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(s.D, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<float> buffer(bf16 ? to_size(s.D) : 0);
                 for (std::int64_t r = begin; r < end; ++r) {
                   if (!bf16) {
                     row(r, std::span<float>(view.as<float>() + r * s.D, to_size(s.D)));
                     continue;
                   }
                   row(r, std::span<float>(buffer));
                   std::uint16_t* out = view.as<std::uint16_t>() + r * s.D;
                   for (std::int64_t i = 0; i < s.D; ++i)
                     out[i] = float_to_bf16(buffer[to_size(i)]);
                 }
               });
}

void x_values(const json& data, std::int64_t r, std::span<float> x, std::uint64_t seed) {
  const std::string kind = data.value("kind", "normal");
  const float mean = data.value("mean", 0.0f), sigma = data.value("sigma", 1.0f);
  if (kind == "ramp") {
    const auto phase = to_size(seed % 64);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = mean + sigma * static_cast<float>((i + phase) % x.size());
    return;
  }
  if (kind == "constant_row" && r == data.at("row").get<std::int64_t>()) {
    for (float& v : x) v = 3.0f;
    return;
  }
  if (kind == "drawn") {
    Random random(substream(seed, 1));
    const float scale = drawn_scale(random);
    return fill_normal(x, seed, drawn_level(random, 2) * scale, scale);
  }
  fill_normal(x, seed, mean, sigma);
  if (kind == "nan_row" && r == data.at("row").get<std::int64_t>()) {
    x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  }
}

// dy in the null space of the projection: a + b xhat gives a dx of order eps / (var + eps).
void null_space(std::span<const float> x, std::span<float> dy, Random& random, double eps) {
  double mean = 0, var = 0;
  for (const float v : x) mean += v;
  mean /= static_cast<double>(x.size());
  for (const float v : x) var += (v - mean) * (v - mean);
  const double rstd = 1 / std::sqrt(var / static_cast<double>(x.size()) + eps);
  const double a = 1 + random.uniform(), b = 1 + random.uniform();
  for (std::size_t i = 0; i < x.size(); ++i)
    dy[i] = static_cast<float>(a + b * (x[i] - mean) * rstd);
}

void dy_values(const json& data, const Shape& s, std::int64_t r, std::span<float> dy,
               const float* x, std::uint64_t seed) {
  const std::string kind = data.value("kind", "normal");
  Random random(seed);
  if (kind == "null_space") {
    if (x == nullptr) throw Error("layer_norm_backward: null_space needs fp32 x");
    return null_space({x, dy.size()}, dy, random, s.eps);
  }
  if (kind == "positive") return fill_uniform(dy, seed, 0.5f, 1.5f);
  if (kind == "column_constant") {  // each fp32 addition to a long sum rounds the same way
    for (std::size_t i = 0; i < dy.size(); ++i) {
      dy[i] =
          0.3f + 0.07f * static_cast<float>(i % 8) + 0.0009f * static_cast<float>(random.below(2));
    }
    return;
  }
  if (kind == "alternating") {
    for (float& v : dy) {
      v = (r % 2 == 0 ? 1e4f : -1e4f) + 1e-2f + static_cast<float>(random.below(8));
    }
    return;
  }
  fill_normal(dy, seed, data.value("mean", 0.0f), data.value("sigma", 1.0f));
}

void gamma_values(const json& data, std::span<float> gamma, std::uint64_t seed) {
  const std::string kind = data.value("kind", "normal");
  Random random(seed);
  if (kind == "ones") {
    for (float& g : gamma) g = 1;
  } else if (kind == "zero_negative") {
    for (float& g : gamma) {
      const auto sign = static_cast<float>(random.below(3) - 1);  // drawn first
      g = sign * static_cast<float>(0.5 + random.uniform());
    }
  } else if (kind == "log_uniform") {
    for (float& g : gamma) g = static_cast<float>(std::pow(10.0, random.uniform(-3, 3)));
  } else {
    fill_normal(gamma, seed, 1.0f, 0.25f);
  }
}

}  // namespace

void generate(const CaseSpec& spec, std::uint64_t seed, BufferViews buffers) {
  const Shape s = shape_of(spec);
  const json empty = json::object();
  const json x_data = spec.params.value("x", empty), dy_data = spec.params.value("dy", empty);
  const auto row_seed = [&](std::uint64_t stream, std::int64_t r) {
    return substream(substream(seed, stream), static_cast<std::uint64_t>(r));
  };
  gamma_values(spec.params.value("gamma", empty), buffers[kGamma].span<float>(),
               substream(seed, 1));
  fill_normal(buffers[kBeta].span<float>(), substream(seed, 2));
  fill_matrix(s, buffers[kX],
              [&](std::int64_t r, std::span<float> x) { x_values(x_data, r, x, row_seed(3, r)); });
  fill_matrix(s, buffers[kOtherX], [&](std::int64_t r, std::span<float> x) {
    fill_normal(x, row_seed(4, r), 2.0f, 3.0f);
  });
  const float* x = s.dtype == ASSAY_F32 ? buffers[kX].as<float>() : nullptr;
  fill_matrix(s, buffers[kDy], [&](std::int64_t r, std::span<float> dy) {
    dy_values(dy_data, s, r, dy, x != nullptr ? x + r * s.D : nullptr, row_seed(5, r));
  });
  fill_matrix(s, buffers[kDres],
              [&](std::int64_t r, std::span<float> d) { fill_normal(d, row_seed(6, r)); });
}

}  // namespace assay::layer_norm_backward
