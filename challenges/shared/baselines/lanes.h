// Vectors of as many floats as a register of the target holds.
#pragma once

#include <cstdint>
#include <cstring>

namespace {

#ifdef __AVX512F__
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif
typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t VecI __attribute__((vector_size(4 * kLanes)));

inline Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
// Not 0 + f: only a difference from 0 is f for all f, -0 too, so that a load is enough.
inline Vec splat(float f) { return f - Vec{}; }
inline Vec larger(Vec a, Vec b) { return a > b ? a : b; }

}  // namespace
