// A box of a tensor in global memory, and the accesses that copy it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "sim/memory/access.h"
#include "sim/memory/bits.h"
#include "sim/tensor_map.h"

namespace assay::sim {

struct TensorTile {
  TensorMap map;
  std::array<std::int32_t, kMostDimensions> at{};  // the first index in each dimension
};

// Bytes of a row of a box that lie in the tensor.
struct TileRow {
  std::uint64_t address = 0;  // in global memory
  std::uint64_t offset = 0;   // in the box, where rows lie one after another
  std::uint32_t bytes = 0;
};

// Calls f(row) for each row of the box of which anything is in the tensor. Elements beyond its
// edges are zeros when they are read, and are not written.
template <class F>
void for_rows(const TensorTile& tile, F&& f) {
  const TensorMap& m = tile.map;
  const std::int64_t first = std::max<std::int64_t>(0, tile.at[0]);
  const std::int64_t end =
      std::min<std::int64_t>(std::int64_t{m.last[0]} + 1, std::int64_t{tile.at[0]} + m.box[0]);
  if (first >= end) return;
  const std::uint64_t element = m.element_bytes();
  const std::uint64_t rows = m.box_bytes() / m.box_row_bytes();
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::uint64_t rest = row;
    std::uint64_t address = m.address + static_cast<std::uint64_t>(first) * element;
    bool inside = true;
    for (unsigned d = 1; d < m.dimensions; ++d) {
      const std::uint32_t extent = m.extent(d);
      const std::int64_t index = tile.at[d] + static_cast<std::int64_t>(rest % extent * m.step[d]);
      rest /= extent;
      inside &= index >= 0 && index <= std::int64_t{m.last[d]};
      address += static_cast<std::uint64_t>(index) * m.row_bytes[d - 1];
    }
    if (!inside) continue;
    f(TileRow{address,
              row * m.box_row_bytes() + static_cast<std::uint64_t>(first - tile.at[0]) * element,
              static_cast<std::uint32_t>(static_cast<std::uint64_t>(end - first) * element)});
  }
}

// Up to kLanes pieces of one size.
struct TilePieces {
  std::uint32_t count = 0, bytes = 0;  // of each: 1, 2, 4, 8 or 16
  std::array<std::uint64_t, kLanes> address{}, offset{};

  std::uint32_t mask() const { return static_cast<std::uint32_t>(low_bits(count)); }
};

// Cuts the rows into pieces that are aligned in global memory and in the box, and calls f(pieces)
// until all are done.
template <class F>
void for_pieces(const TensorTile& tile, F&& f) {
  TilePieces pieces;
  const auto flush = [&] {
    if (pieces.count != 0) f(std::as_const(pieces));
    pieces.count = 0;
  };
  for_rows(tile, [&](const TileRow& row) {
    const std::uint64_t common = row.address | row.offset | row.bytes | kBulkPiece;
    const auto bytes = static_cast<std::uint32_t>(std::uint64_t{1} << std::countr_zero(common));
    if (bytes != pieces.bytes) flush();
    pieces.bytes = bytes;
    for (std::uint32_t at = 0; at < row.bytes; at += bytes) {
      pieces.address[pieces.count] = row.address + at;
      pieces.offset[pieces.count] = row.offset + at;
      if (++pieces.count == kLanes) flush();
    }
  });
  flush();
}

}  // namespace assay::sim
