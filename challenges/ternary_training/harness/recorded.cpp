// Turns recorded calls into cases: formats and linear layers, whose results are exact or have a
// bound that holds for every order of summation.
#include "shared/recorded.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "assay/size.h"
#include "trusted.h"

namespace assay::ternary_training {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostRows = 1 << 16, kMostElements = 1 << 22, kMostProducts = 1 << 28;
constexpr double kLargest = 1e15;  // no product of two, and no sum of products, overflows

bool sized(const Params& p) {
  const auto within = [](std::int64_t n) { return n >= 0 && n <= kMostRows; };
  return within(p.M) && within(p.rows) && within(p.cols) && p.cols % kBlockWeights == 0 &&
         p.rows * p.cols <= kMostElements && p.M * std::max(p.rows, p.cols) <= kMostElements &&
         p.M * p.rows * p.cols <= kMostProducts;
}

std::optional<json> conversion(const RecordedCall& call, const Params& p, const char* entry,
                               int from, int to) {
  const std::int64_t n = p.rows * p.cols;
  if (!sized(p) || !has(call, from, n) || !has(call, to, n)) return std::nullopt;
  return json{{"entry", entry}, {"rows", p.rows}, {"cols", p.cols}};
}

std::optional<json> linear_params(const RecordedCall& call, const Params& p) {
  using namespace linear;
  if (!sized(p)) return std::nullopt;
  const std::int64_t x = p.M * p.cols, y = p.M * p.rows, w = p.rows * p.cols;
  if (!has(call, kX, x) || !has(call, kBlocks, w) || !has(call, kDy, y) || !has(call, kY, y) ||
      !has(call, kDx, x) || !has(call, kDw, w))
    return std::nullopt;
  const bool bf16 = call.entry == kLinearBf16;
  constexpr std::int64_t kMostBf16Terms = 4096;  // whose roundings are far below that of bf16
  if (bf16 && std::max(p.rows, p.cols) > kMostBf16Terms) return std::nullopt;
  // The bound in cases is for values as they are drawn. For arbitrary values, n terms may be off by
  // n roundings, whatever the order of addition.
  constexpr std::int64_t kOthers = 4;  // roundings of the products and of the scale
  const std::int64_t terms = std::max({p.M, p.rows, p.cols, std::int64_t{32}}) + kOthers;
  return json{{"entry", bf16 ? "linear_bf16" : "linear"},
              {"M", p.M},
              {"rows", p.rows},
              {"cols", p.cols},
              {"C", static_cast<double>(terms)}};
}

// Of the right size, with numbers that do not overflow when a few of them are multiplied.
std::optional<json> config_params(const tt_config& c) {
  if (c.size != sizeof(tt_config)) return std::nullopt;
  for (const std::int32_t n : {c.V, c.d, c.L, c.Hq, c.Hkv, c.hd, c.ff, c.T, c.tied}) {
    if (n < -kMostRows || n > kMostRows + 1) return std::nullopt;
  }
  constexpr double kMostWeights = 0x1p50;
  const double heads = 2.0 * c.hd * (static_cast<double>(c.Hq) + c.Hkv), ff = 3.0 * c.ff;
  const double weights = c.d * (2.0 * c.V + c.L * (heads + ff));
  if (!std::isfinite(c.theta) || std::abs(weights) > kMostWeights) return std::nullopt;
  return json{{"V", c.V},   {"d", c.d},   {"L", c.L}, {"Hq", c.Hq},     {"Hkv", c.Hkv},
              {"hd", c.hd}, {"ff", c.ff}, {"T", c.T}, {"tied", c.tied}, {"theta", c.theta}};
}

std::optional<json> statistics_params(const RecordedCall& call, const Params& p) {
  using namespace statistics;
  const auto config = config_params(p.config);
  if (!config) return std::nullopt;
  const std::int64_t bytes = blob_size(p.config);
  if (bytes <= 0 || bytes > kMostElements || !has(call, kBlob, 1) || !has(call, kCounts, 1) ||
      call.find(kBefore) == nullptr)
    return std::nullopt;
  const bool alone = call.find(kBefore)->null;
  if (!recorded_values<std::uint8_t>(call, kBlob, bytes) ||
      !recorded_values<std::uint8_t>(call, kBefore, alone ? 0 : bytes))
    return std::nullopt;
  return json{{"entry", "statistics"}, {"config", *config}, {"null_before", alone}};
}

// --- what inputs must be

bool legal_blocks(std::span<const std::uint8_t> blocks) {
  double w[kBlockWeights];
  for (std::size_t at = 0; at < blocks.size(); at += kBlockBytes) {
    if (!decode_block(blocks.data() + at, w)) return false;
  }
  return true;
}

// Whether these are dense blocks that a legal block can become.
bool legal_dense(std::span<const std::uint8_t> dense) {
  for (std::size_t at = 0; at < dense.size(); at += kDenseBytes) {
    std::uint8_t block[kBlockBytes] = {}, again[kDenseBytes] = {};
    double w[kBlockWeights];
    undense_block(dense.data() + at, block);
    if (!decode_block(block, w)) return false;
    dense_block(block, again);
    if (std::memcmp(again, dense.data() + at, sizeof again) != 0) return false;
  }
  return true;
}

// The scale of a block is the rounded mean. The order of its sum is unspecified, so the sum must be
// exact in every order, or so far from the midpoint between two scales that it does not matter.
bool has_clear_scale(std::span<const float> block) {
  ExactSums sums;
  double sum = 0;
  for (const float w : block) {
    if (!std::isfinite(w)) return false;
    sums.add(static_cast<double>(w));
    sum += std::abs(static_cast<double>(w));
  }
  constexpr int kDoubleBits = 53;
  if (sums.fit(kBlockWeights, kDoubleBits)) return true;
  const double mean = std::min(sum / kBlockWeights, 65504.0);
  return half_bits(mean * (1 - 1e-12)) == half_bits(mean * (1 + 1e-12));
}

bool have_clear_scales(std::span<const float> w) {
  for (; !w.empty(); w = w.subspan(kBlockWeights)) {
    if (!has_clear_scale(w.first(kBlockWeights))) return false;
  }
  return true;
}

bool are_bounded(const BufferView& view, bool bf16) {
  return largest_magnitude(view, bf16).value_or(HUGE_VAL) <= kLargest;
}

bool legal_matrices(const tt_config& c, std::span<const std::uint8_t> blob) {
  std::size_t bytes = 0;
  for (const MatrixSize& m : matrices_of(c)) bytes += to_size(block_bytes(m.rows, m.cols));
  return blob.empty() || legal_blocks(blob.first(bytes));
}

}  // namespace

std::optional<json> recorded_params(const RecordedCall& call) {
  const auto params = call.params_as<Params>();
  if (!params) return std::nullopt;
  switch (call.entry) {
    case kQuantize: return conversion(call, *params, "quantize", quantize::kW, quantize::kBlocks);
    case kDequantize:
      return conversion(call, *params, "dequantize", dequantize::kBlocks, dequantize::kW);
    case kPackDense: return conversion(call, *params, "pack_dense", dense::kFrom, dense::kTo);
    case kUnpackDense: return conversion(call, *params, "unpack_dense", dense::kFrom, dense::kTo);
    case kLinear:
    case kLinearBf16: return linear_params(call, *params);
    case kBlobBytes: {
      const auto config = config_params(params->config);
      if (!config) return std::nullopt;
      return json{{"entry", "blob_bytes"}, {"config", *config}};
    }
    case kStatistics: return statistics_params(call, *params);
    default: return std::nullopt;
  }
}

bool adopt_inputs(const CaseSpec& spec, BufferViews buffers) {
  const Shape s = shape_of(spec);
  switch (s.entry) {
    case kQuantize: return have_clear_scales(buffers[quantize::kW].span<float>());
    case kDequantize: return legal_blocks(buffers[dequantize::kBlocks].span<std::uint8_t>());
    case kPackDense: return legal_blocks(buffers[dense::kFrom].span<std::uint8_t>());
    case kUnpackDense: return legal_dense(buffers[dense::kFrom].span<std::uint8_t>());
    case kLinear:
    case kLinearBf16: {
      const bool bf16 = s.entry == kLinearBf16;
      return are_bounded(buffers[linear::kX], bf16) && are_bounded(buffers[linear::kDy], bf16) &&
             legal_blocks(buffers[linear::kBlocks].span<std::uint8_t>());
    }
    case kStatistics:
      return legal_matrices(s.call.config, buffers[statistics::kBlob].span<std::uint8_t>()) &&
             legal_matrices(s.call.config, buffers[statistics::kBefore].span<std::uint8_t>());
    default: return true;
  }
}

}  // namespace assay::ternary_training
