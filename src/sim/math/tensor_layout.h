// Which elements of a matrix each lane of a warp holds: the fragments of mma.sync and wmma.
// Source: NVIDIA, PTX ISA 9.0, "Matrix Fragments for mma.*".
//
// All those figures follow one rule. A register packs E elements (E = 32 / bits of an element; 1
// for 64-bit elements). Its 32 lanes hold a tile of 8 rows and 4 E columns: lane 4 g + t has row g,
// columns E t to E t + E - 1, the first in the lowest bits. So the bytes of a register's 32 lanes,
// read as one array, are the tile in row-major order. Two registers form a tile of 8 x 8
// accumulators of 32 or 64 bits: lane 4 g + t has row g, column 2 t in the first and column 2 t + 1
// in the second.
//
// A fragment is a sequence of tiles of the matrix or of its transpose, its *view*: A (m x k) as is,
// B (k x n) transposed, C and D (m x n) as is. The tiles fill blocks of 16 rows (A), 8 rows (B, and
// A if m = 8) or all rows (C, D), downwards first.
#pragma once

#include <cstdint>

namespace assay::sim {

struct TileOrigin {
  int row = 0, col = 0;  // in the view
};

// The origin of tile number `tile` in a view `cols` wide, with tiles `width` columns wide.
constexpr TileOrigin tile_origin(int tile, int block_rows, int cols, int width) {
  const int down = block_rows / 8, per_block = down * (cols / width);
  const int block = tile / per_block, in_block = tile % per_block;
  return {block * block_rows + 8 * (in_block % down), width * (in_block / down)};
}

// Columns of a tile of multiplicands; a tile of accumulators has 8.
constexpr int tile_width(int element_bits) { return element_bits == 64 ? 4 : 128 / element_bits; }

// One fragment of one shape.
struct FragmentLayout {
  int rows = 0, cols = 0;  // of the view
  int block_rows = 8;
  int element_bits = 32;
  int registers = 0;        // in the instruction's list
  bool transposed = false;  // the view is the transpose of the matrix
  bool accumulator = false;

  // Whether a tile takes two registers.
  constexpr bool pairs() const { return accumulator && element_bits >= 32; }
  constexpr int width() const { return pairs() ? 8 : tile_width(element_bits); }
  constexpr int tiles() const { return rows * cols / (8 * width()); }
  // Some lists have room for several copies of the matrix: tile t of the list is tile t % tiles().
  constexpr TileOrigin origin(int tile) const {
    return tile_origin(tile % tiles(), block_rows, cols, width());
  }
};

constexpr int registers_of(int elements, int bits) {
  return elements * bits / (bits == 64 ? 2048 : 1024);
}

struct MmaShape {
  int m = 0, n = 0, k = 0;
  constexpr bool operator==(const MmaShape&) const = default;
  // Wider than tall (m8n32k16): the mirror image of n x m, that is, D^T = B^T A^T + C^T.
  constexpr bool mirrored() const { return n > 16; }
  constexpr MmaShape mirror() const { return {n, m, k}; }
};

// `registers` == 0: as many as the matrix fills.
constexpr FragmentLayout layout_a(MmaShape s, int bits, int registers = 0) {
  const int needed = registers_of(s.m * s.k, bits);
  return {s.m, s.k, s.m == 8 ? 8 : 16, bits, registers == 0 ? needed : registers, false, false};
}

constexpr FragmentLayout layout_b(MmaShape s, int bits, int registers = 0) {
  const int needed = registers_of(s.k * s.n, bits);
  return {s.n, s.k, s.mirrored() ? 16 : 8, bits, registers == 0 ? needed : registers, true, false};
}

constexpr FragmentLayout layout_c(MmaShape s, int bits) {
  const int rows = s.mirrored() ? s.n : s.m, cols = s.mirrored() ? s.m : s.n;
  return {rows, cols, rows, bits, registers_of(rows * cols, bits), s.mirrored(), true};
}

}  // namespace assay::sim
