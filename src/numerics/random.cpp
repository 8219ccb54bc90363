#include "assay/random.h"

#include <cmath>
#include <numbers>

#include "assay/dtype.h"
#include "assay/parallel.h"

namespace assay {
namespace {

constexpr std::int64_t kGrain = 1 << 16;

// The sum of four independent 16-bit uniforms, centred: variance (2^32 - 1) / 3.
inline float four_uniforms(std::uint64_t r) {
  const auto sum = static_cast<std::int32_t>((r & 0xffff) + ((r >> 16) & 0xffff) +
                                             ((r >> 32) & 0xffff) + (r >> 48));
  return static_cast<float>(sum - 131070) * 2.6429e-5f;  // 1 / sqrt((2^32 - 1) / 3)
}

inline std::uint64_t element(std::uint64_t seed, std::int64_t i) {
  return mix64(seed + static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15ull);
}

template <class T, class F>
void fill_with(std::span<T> out, F value) {
  parallel_for(static_cast<std::int64_t>(out.size()), kGrain,
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) out[i] = value(i);
               });
}

}  // namespace

double Random::normal() {
  const double u = 1.0 - uniform();  // (0, 1]
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
}

void fill_normal(std::span<float> out, std::uint64_t seed, float mean, float sigma) {
  fill_with(out, [=](std::int64_t i) { return mean + sigma * four_uniforms(element(seed, i)); });
}

void fill_uniform(std::span<float> out, std::uint64_t seed, float lo, float hi) {
  fill_with(out, [=](std::int64_t i) {
    return lo + (hi - lo) * (static_cast<float>(element(seed, i) >> 40) * 0x1p-24f);
  });
}

void fill_normal_bf16(std::span<std::uint16_t> out, std::uint64_t seed, float mean, float sigma) {
  fill_with(out, [=](std::int64_t i) {
    return float_to_bf16(mean + sigma * four_uniforms(element(seed, i)));
  });
}

}  // namespace assay
