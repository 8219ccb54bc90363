// Transposition of squares of floats in registers.
#pragma once

namespace {

// Rows of a square, one vector each, become its columns. Each round interleaves the upper half of
// the rows with the lower half: the index of a row and that of a lane, written one after the other,
// turn by one bit.
template <class Vec>
inline void transpose_square(Vec* rows) {
  constexpr int kLanes = static_cast<int>(sizeof(Vec) / sizeof(float));
  using Places = decltype(Vec{} < Vec{});
  Places low{};
  for (int i = 0; i < kLanes; ++i) low[i] = i / 2 + i % 2 * kLanes;
  const Places high = low + kLanes / 2;
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    Vec turned[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes / 2; ++i) {
      turned[2 * i] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], low);
      turned[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = turned[i];
  }
}

}  // namespace
