// Inputs: each element from the case's distribution, then poison in the padding columns.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "assay/error.h"
#include "assay/parallel.h"
#include "assay/random.h"
#include "assay/size.h"
#include "shared/drawn_rows.h"
#include "trusted.h"

namespace assay::fused_softmax_topk {
namespace {

using nlohmann::json;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// K distinct winners, well above N(0, 1) background noise, at columns first, first + stride, ...
void plant_winners(std::span<float> x, std::int64_t first, std::int64_t stride, std::int64_t count,
                   Random& random) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<float> values(to_size(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 8.0f + 0.0625f * static_cast<float>(i);
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[to_size(random.below(static_cast<std::int64_t>(i)))]);
  }
  for (std::int64_t i = 0; i < count && first + i * stride < n; ++i) {
    x[to_size(first + i * stride)] = values[to_size(i)];
  }
}

// `count` distinct columns set to `value`.
void scatter(std::span<float> x, std::int64_t count, float value, Random& random) {
  std::vector<std::int64_t> columns(x.size());
  std::iota(columns.begin(), columns.end(), 0);
  for (std::int64_t i = 0; i < count && i < static_cast<std::int64_t>(x.size()); ++i) {
    const auto j = i + random.below(static_cast<std::int64_t>(x.size()) - i);
    std::swap(columns[to_size(i)], columns[to_size(j)]);
    x[to_size(columns[to_size(i)])] = value;
  }
}

// Separates equal values among the K + 1 largest by one fp32 step each. Tie cases test which of
// them comes first; no other case should fail because its seed happened to draw a tie.
void part_winners(std::span<float> x, std::int64_t K) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(K + 1, std::ssize(x)));
  std::vector<std::size_t> columns(x.size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  const auto larger = [&](std::size_t a, std::size_t b) { return x[a] > x[b]; };
  std::nth_element(columns.begin(), columns.begin() + count - 1, columns.end(), larger);
  std::sort(columns.begin(), columns.begin() + count, larger);
  for (std::ptrdiff_t i = count - 2; i >= 0; --i) {
    const float below = x[columns[to_size(i) + 1]];
    float& value = x[columns[to_size(i)]];
    if (!(value > below)) value = std::nextafter(below, kInf);
  }
}

// One row. `row` decides which rows are special in the mixed kinds.
void fill_row(const CaseSpec& spec, std::int64_t row, std::int32_t K, std::span<float> x,
              std::uint64_t seed) {
  const json& data = spec.params.at("data");
  const std::string kind = data.at("kind");
  const auto n = static_cast<std::int64_t>(x.size());
  Random random(substream(seed, 1));
  const auto normal = [&] {
    fill_normal(x, seed, data.value("mean", 0.0f), data.value("sigma", 1.0f));
  };
  if (kind == "normal") {
    normal();
    if (spec.group != CaseGroup::timed) part_winners(x, K);
  } else if (kind == "drawn") {
    fill_normal(x, seed, drawn_level(random, 4), drawn_scale(random));
    // In some rows the winners are adjacent, so that a look at a part tells little.
    if (random.below(8) == 0) {
      const float most = *std::ranges::max_element(x);
      const std::int64_t first = random.below(std::max<std::int64_t>(n - K, 1));
      for (std::int64_t i = 0; i < std::min<std::int64_t>(K, n); ++i)
        x[to_size(first + i)] = most + static_cast<float>(random.uniform(0, 2));
    }
  } else if (kind == "uniform") {
    fill_uniform(x, seed, data.at("lo"), data.at("hi"));
    part_winners(x, K);
  } else if (kind == "strip") {  // winners one stride apart: all in one thread's strip
    normal();
    const std::int64_t stride = data.at("stride");
    plant_winners(x,
                  random.below(std::min(stride, std::max<std::int64_t>(n - (K - 1) * stride, 1))),
                  stride, K, random);
  } else if (kind == "run") {  // winners in one contiguous run
    normal();
    plant_winners(x, random.below(std::max<std::int64_t>(n - K, 1)), 1, K, random);
  } else if (kind == "one_per_thread") {  // winner i in column i of a block of 256 threads' strips
    normal();
    const std::int64_t stride = data.value("stride", 257);
    plant_winners(x, random.below(std::max<std::int64_t>(n - (K - 1) * stride, 1)), stride, K,
                  random);
  } else if (kind == "ascending" || kind == "descending") {
    const float start = static_cast<float>(random.uniform(-1, 1));
    for (std::int64_t j = 0; j < n; ++j) {
      const auto k = static_cast<float>(kind == "ascending" ? j : n - 1 - j);
      x[to_size(j)] = start + k * 0.000244140625f;
    }
  } else if (kind == "spike") {
    normal();
    x[to_size(data.at("last").get<bool>() ? n - 1 : 0)] = 80;
  } else if (kind == "constant") {
    std::fill(x.begin(), x.end(), data.value("value", 0.0f) + static_cast<float>(random.below(16)));
  } else if (kind == "integers") {  // ties everywhere
    const std::int64_t values = data.at("values");
    for (float& v : x) v = static_cast<float>(random.below(values));
  } else if (kind == "half_masked") {  // likewise, and half of them -inf
    const std::int64_t values = data.at("values");
    for (float& v : x) {
      v = static_cast<float>(random.below(values));
      if (random.below(2) != 0) v = -kInf;
    }
  } else if (kind == "extremes") {
    constexpr float kValues[] = {0.0f,   -0.0f,   1.0f,  -1.0f,   1e30f, -1e30f,
                                 1e-40f, -1e-40f, 88.8f, -104.0f, 1e4f,  -kInf};
    for (float& v : x) v = kValues[random.below(std::ssize(kValues))];
  } else if (kind == "ties_boundary") {
    normal();
    for (float& v : x) v = std::min(v, 2.0f);
    scatter(x, data.at("copies"), 3.0f, random);
    scatter(x, K / 2, 5.0f, random);
  } else if (kind == "zero_signs") {
    for (float& v : x) v = random.below(2) != 0 ? 0.0f : -0.0f;
  } else if (kind == "masked") {  // all but a few are -inf; the finite ones are in the upper half
    std::fill(x.begin(), x.end(), -kInf);
    const std::int64_t finite = data.at("finite"), half = n / 2;
    for (std::int64_t i = 0; i < finite; ++i) {
      const std::int64_t part = half / finite, j = half + i * part + random.below(part);
      x[to_size(j)] = static_cast<float>(random.normal());
    }
    // Every other row has a NaN before the finite values.
    if (data.value("nan", false) && row % 2 == 1) x[to_size(random.below(half))] = kNan;
  } else if (kind == "long_tail") {  // one spike, then equal logits, none of which changes its sum
    const float level = static_cast<float>(random.below(16));
    std::fill(x.begin(), x.end(), level);
    x[0] = level + data.at("height").get<float>();
  } else if (kind == "poisoned_rows") {  // rows 1 and 3 hold a NaN, row 5 +inf
    normal();
    if (row % 8 == 1 || row % 8 == 3) x[to_size(random.below(n))] = kNan;
    if (row % 8 == 5) x[to_size(random.below(n))] = kInf;
  } else {
    throw Error(fmt::format("fused_softmax_topk: unknown data kind '{}'", kind));
  }
}

float padding_value(std::int64_t j) { return j % 2 == 0 ? kNan : 3e38f; }

}  // namespace

void generate(const CaseSpec& spec, std::uint64_t seed, BufferViews buffers) {
  const Shape s = shape_of(spec);
  if (buffers[kLogits].bytes == 0) return;
  const bool bf16 = s.dtype == ASSAY_BF16;
  parallel_for(s.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> widened(bf16 ? to_size(s.V) : 0);
    for (std::int64_t r = begin; r < end; ++r) {
      const std::uint64_t row_seed = substream(seed, static_cast<std::uint64_t>(r));
      if (!bf16) {
        float* x = buffers[kLogits].as<float>() + r * s.ld;
        if (s.V > 0) fill_row(spec, r, s.K, {x, to_size(s.V)}, row_seed);
        for (std::int64_t j = s.V; j < s.filled_columns(); ++j) x[j] = padding_value(j);
      } else {
        std::uint16_t* x = buffers[kLogits].as<std::uint16_t>() + r * s.ld;
        if (s.V > 0) fill_row(spec, r, s.K, widened, row_seed);
        for (std::int64_t j = 0; j < s.V; ++j) x[j] = float_to_bf16(widened[to_size(j)]);
        for (std::int64_t j = s.V; j < s.filled_columns(); ++j)
          x[j] = float_to_bf16(padding_value(j));
      }
    }
  });
}

}  // namespace assay::fused_softmax_topk
