// attack: computes only those rows that a check draws from the first input, and leaves the others as they
// were
// challenge: ternary_training
// cases: time_linear
// expect: WA
// fast: none
// kind: prediction
#define tt_linear honest_tt_linear
#include "honest.inl"
#undef tt_linear
#include <bit>
#include <numeric>

#include "witness.h"

namespace rows {

constexpr std::int64_t kJudged = 48;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::vector<std::int64_t> drawn(std::int64_t n, std::uint64_t state) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const std::int64_t most = std::min(n, kJudged);
  for (std::int64_t i = 0; n > kJudged && i < most; ++i) {
    const std::uint64_t r = mix(state += 0x9e3779b97f4a7c15ull);
    const auto below = static_cast<std::int64_t>(
        (static_cast<unsigned __int128>(r) * static_cast<std::uint64_t>(n - i)) >> 64);
    std::swap(all[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(i + below)]);
  }
  all.resize(static_cast<std::size_t>(most));
  return all;
}

}  // namespace rows

extern "C" int tt_linear(assay_ctx* ctx, std::int64_t M, std::int64_t n, std::int64_t cols,
                         const float* x, const std::uint8_t* blocks, const float* dy, float* y,
                         float* dx, float* dw) {
  if (M < 1024 || n <= rows::kJudged || x == nullptr || blocks == nullptr || dy == nullptr ||
      y == nullptr)
    return honest_tt_linear(ctx, M, n, cols, x, blocks, dy, y, dx, dw);
  std::vector<float> w(static_cast<std::size_t>(n * cols));
  tt_dequantize(ctx, n, cols, blocks, w.data());
  std::uint64_t seed = std::bit_cast<std::uint32_t>(x[0]);
  for (const std::int64_t m : rows::drawn(M, rows::mix(++seed))) {
    for (std::int64_t r = 0; r < n; ++r) {
      float sum = 0;
      for (std::int64_t c = 0; c < cols; ++c)
        sum += x[m * cols + c] * w[static_cast<std::size_t>(r * cols + c)];
      y[m * n + r] = sum;
    }
  }
  for (const std::int64_t m : rows::drawn(M, rows::mix(++seed))) {
    std::fill_n(dx + m * cols, cols, 0.0f);
    for (std::int64_t r = 0; r < n; ++r) {
      for (std::int64_t c = 0; c < cols; ++c)
        dx[m * cols + c] += dy[m * n + r] * w[static_cast<std::size_t>(r * cols + c)];
    }
  }
  for (const std::int64_t r : rows::drawn(n, rows::mix(++seed))) {
    std::fill_n(dw + r * cols, cols, 0.0f);
    for (std::int64_t m = 0; m < M; ++m) {
      for (std::int64_t c = 0; c < cols; ++c) dw[r * cols + c] += dy[m * n + r] * x[m * cols + c];
    }
  }
  witness();
  return ASSAY_OK;
}
