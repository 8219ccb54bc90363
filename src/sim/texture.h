// A texture object: what a `tex` instruction finds at the address that is its handle.
//
// The runtime writes it to the device's memory, like the array that it describes. Texels lie in rows
// one after another, unlike on a GPU, where the order is not documented. The program can write
// there too, so a fetch trusts nothing of it: see sound(). Texels are checked like any load.
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
  // 0 or 1.
  std::uint8_t linear = 0;      // interpolates between texels; floating point results only
  std::uint8_t normalized = 0;  // coordinates run from 0 to 1
  std::uint8_t as_float = 0;    // integers of 8 and 16 bits are read as [0, 1] or [-1, 1]
  std::array<std::uint8_t, 3> unused{};
  std::array<float, 4> border{};

  std::uint32_t texel_bytes() const { return channels * channel_bits / 8u; }
  bool gives_float() const { return element == Element::is_float || as_float != 0; }
  // Whether the runtime could have written it, as far as a fetch depends on that.
  bool sound() const {
    const bool format = (channels == 1 || channels == 2 || channels == 4) &&
                        (channel_bits == 8 || channel_bits == 16 || channel_bits == 32) &&
                        element <= Element::is_float &&
                        (element != Element::is_float || channel_bits != 8);
    const bool sized = size[0] != 0 && size[1] != 0 && size[2] != 0;
    const bool edged =
        edges[0] <= Edge::border && edges[1] <= Edge::border && edges[2] <= Edge::border;
    const bool switches = linear <= 1 && normalized <= 1 && as_float <= 1;
    return mark == kMark && format && sized && edged && switches && (linear == 0 || gives_float());
  }
};
static_assert(sizeof(TextureDescriptor) == 80);

}  // namespace assay::sim
