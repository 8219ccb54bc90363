// A texture object: what a `tex` instruction finds at the address that is its handle.
//
// The runtime writes it to the device's memory, like the array that it describes. Texels lie in rows
// one after another, unlike on a GPU, where the order is not documented. A program that makes up a
// handle reads nothing that its own pointers could not: texels are checked like any load.
#pragma once

#include <array>
#include <cstdint>

namespace assay::sim {

struct TextureDescriptor {
  static constexpr std::uint64_t kMark = 0x7465787475726531;  // of a live object

  enum class Element : std::uint8_t { is_signed, is_unsigned, is_float };
  // How a coordinate beyond the edge is treated; numbers as in cudaTextureAddressMode.
  enum class Edge : std::uint8_t { wrap, clamp, mirror, border };

  std::uint64_t mark = kMark;
  std::uint64_t address = 0;                     // of the first texel
  std::uint64_t row_bytes = 0, slice_bytes = 0;  // from row to row, from slice to slice
  std::array<std::uint32_t, 3> size{};           // texels by dimension; at least 1
  std::uint8_t dimensions = 1;
  std::uint8_t channels = 1, channel_bits = 32;  // 1, 2 or 4; 8, 16 or 32
  Element element = Element::is_float;
  std::array<Edge, 3> edges{};
  bool linear = false;      // interpolates between texels; floating point results only
  bool normalized = false;  // coordinates run from 0 to 1
  bool as_float = false;    // integers of 8 and 16 bits are read as [0, 1] or [-1, 1]
  std::array<std::uint8_t, 3> unused{};
  std::array<float, 4> border{};

  std::uint32_t texel_bytes() const { return channels * channel_bits / 8u; }
};
static_assert(sizeof(TextureDescriptor) == 80);

}  // namespace assay::sim
