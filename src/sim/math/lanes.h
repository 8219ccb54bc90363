// The 32 lanes of a warp as arrays that compilers vectorise.
#pragma once

#include <cstdint>

#if defined(__AVX512DQ__) || defined(__AVX__)
#include <immintrin.h>
#endif

namespace assay::sim {

struct alignas(64) Lanes32 {
  std::uint32_t v[32];
};

struct alignas(64) Lanes64 {
  std::uint64_t v[32];
};

// Bit l of the result is the top bit of lane l.
inline std::uint32_t to_mask(const Lanes32& lanes) {
#if defined(__AVX512DQ__)
  const auto low = static_cast<std::uint32_t>(_mm512_movepi32_mask(_mm512_load_si512(lanes.v)));
  const auto high =
      static_cast<std::uint32_t>(_mm512_movepi32_mask(_mm512_load_si512(lanes.v + 16)));
  return low | high << 16;
#elif defined(__AVX__)
  std::uint32_t mask = 0;
  for (int i = 0; i < 4; ++i) {
    const __m256i eight = _mm256_load_si256(reinterpret_cast<const __m256i*>(lanes.v + 8 * i));
    mask |= static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(eight))) << 8 * i;
  }
  return mask;
#else
  std::uint32_t mask = 0;
  for (int l = 0; l < 32; ++l) mask |= (lanes.v[l] >> 31) << l;
  return mask;
#endif
}

}  // namespace assay::sim
