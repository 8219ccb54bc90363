// Matrices in shared memory that wgmma multiplies, as a descriptor of 64 bits names them (PTX ISA,
// "Asynchronous Warpgroup Level Matrix Shared Memory Layout"). Pieces of 16 bytes lie together.
//
// The matrix has rows, which are those of A or the columns of B, and 32 bytes of k.
//   K-major: a piece is half of a row. Eight rows are 16, 32, 64 or 128 bytes apart, which is the
//     width of the swizzle. The next eight rows follow after stride_bytes, and without swizzle the
//     second half of a row after leading_bytes.
//   Otherwise, for elements of 16 bits: a piece is eight rows at one k. Eight k are 16, 32, 64 or
//     128 bytes apart, with the pieces of 1, 2, 4 or 8 times eight rows side by side. The next rows
//     follow after leading_bytes and the next eight k after stride_bytes; without swizzle the other
//     way round.
#pragma once

#include <cstdint>

#include "sim/tensor_map.h"

namespace assay::sim {

struct SharedMatrix {
  std::uint32_t start = 0, leading_bytes = 0, stride_bytes = 0;  // start: in shared memory
  TensorMap::Swizzle swizzle = TensorMap::Swizzle::none;
  std::uint32_t base_offset = 0;
  bool k_major = true;

  static SharedMatrix decode(std::uint64_t descriptor, bool k_major) {
    constexpr TensorMap::Swizzle kSwizzles[] = {
        TensorMap::Swizzle::none, TensorMap::Swizzle::span128, TensorMap::Swizzle::span64,
        TensorMap::Swizzle::span32};
    const auto field = [&](unsigned bit) {
      return static_cast<std::uint32_t>(descriptor >> bit & 0x3fff) * 16;
    };
    return {field(0),
            field(16),
            field(32),
            kSwizzles[descriptor >> 62],
            static_cast<std::uint32_t>(descriptor >> 49 & 7),
            k_major};
  }

  // Of half 0 or 1 of a row of a K-major matrix.
  std::uint32_t half_row(std::uint32_t row, std::uint32_t half) const {
    const bool swizzles = swizzle != TensorMap::Swizzle::none;
    return place(row % 8 * 16 * width() + row / 8 * stride_bytes +
                 half * (swizzles ? 16 : leading_bytes));
  }
  // Of eight rows from a multiple of eight on, at one k, of another matrix.
  std::uint32_t eight_rows(std::uint32_t row, std::uint32_t k) const {
    const std::uint32_t piece = row / 8;
    const bool swizzles = swizzle != TensorMap::Swizzle::none;
    return place(piece % width() * 16 +
                 piece / width() * (swizzles ? leading_bytes : stride_bytes) +
                 k % 8 * 16 * width() + k / 8 * (swizzles ? stride_bytes : leading_bytes));
  }

 private:
  std::uint32_t width() const { return 1u << static_cast<unsigned>(swizzle); }  // pieces
  std::uint32_t place(std::uint32_t offset) const {
    return static_cast<std::uint32_t>(swizzled(swizzle, std::uint64_t{start} + offset));
  }
};

}  // namespace assay::sim
