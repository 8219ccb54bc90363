// tex: fetches from texture objects of one to three dimensions (PTX ISA 9.0, "Texture
// Instructions: tex"). Layers, cubes, levels of detail and gathers are refused.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "sim/execution/memory_path.h"
#include "sim/math/convert.h"
#include "sim/math/formats.h"
#include "sim/math/texture_sampling.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {

using ptx::Space;

namespace {

// Instr::e
struct TextureFlags {
  unsigned dimensions = 1;
  bool float_coordinates = false, float_result = false;

  std::uint32_t encode() const {
    return dimensions | (float_coordinates ? 4u : 0u) | (float_result ? 8u : 0u);
  }
  static TextureFlags decode(std::uint32_t e) { return {e & 3, (e & 4) != 0, (e & 8) != 0}; }
};

using Texel = std::array<std::uint32_t, 4>;  // floats or integers, by channel

// What the lanes in `lanes` read from one texture.
class Fetch {
 public:
  Fetch(WarpRun& w, const Instr& in, const TextureDescriptor& texture, std::uint32_t lanes)
      : w_(w), in_(in), flags_(TextureFlags::decode(in.e)), t_(texture), lanes_(lanes) {}

  void run() {
    each_lane([&](unsigned l) {
      for (unsigned d = 0; d < flags_.dimensions; ++d) {
        pairs_[d][l] =
            sample(coordinate(d, l), t_.size[d], t_.edges[d], t_.normalized != 0, t_.linear != 0);
      }
    });
    if (t_.linear != 0) {
      interpolate();
    } else {
      read(0);
      each_lane([&](unsigned l) { result_[l] = texels_[l]; });
    }
    for (unsigned c = 0; c < 4; ++c) {
      Lanes32& to = w_.r32(w_.extra[in_.aux + c]);
      each_lane([&](unsigned l) { to.v[l] = result_[l][c]; });
    }
  }

 private:
  template <class Body>
  void each_lane(Body&& body) const {
    for (std::uint32_t rest = lanes_; rest != 0; rest &= rest - 1)
      body(static_cast<unsigned>(std::countr_zero(rest)));
  }

  double coordinate(unsigned dimension, unsigned lane) const {
    const std::uint32_t bits = w_.r32(w_.extra[in_.aux + 5 + dimension]).v[lane];
    return flags_.float_coordinates ? static_cast<double>(std::bit_cast<float>(bits))
                                    : static_cast<double>(std::bit_cast<std::int32_t>(bits));
  }

  // All corners, in an order that does not depend on the lane. A corner without weight is not read.
  void interpolate() {
    std::array<std::array<float, 4>, kLanes> sums{};
    const std::uint32_t all = lanes_;
    for (unsigned corner = 0; corner < 1u << flags_.dimensions; ++corner) {
      std::array<float, kLanes> weights{};
      std::uint32_t weighted = 0;
      each_lane([&](unsigned l) {
        weights[l] = weight(corner, l);
        weighted |= (weights[l] != 0 ? 1u : 0u) << l;
      });
      if (weighted == 0) continue;
      lanes_ = weighted;
      read(corner);
      each_lane([&](unsigned l) {
        for (unsigned c = 0; c < 4; ++c)
          sums[l][c] += weights[l] * std::bit_cast<float>(texels_[l][c]);
      });
      lanes_ = all;
    }
    each_lane([&](unsigned l) {
      for (unsigned c = 0; c < 4; ++c) result_[l][c] = std::bit_cast<std::uint32_t>(sums[l][c]);
    });
  }

  float weight(unsigned corner, unsigned lane) const {
    float product = 1;
    for (unsigned d = 0; d < flags_.dimensions; ++d) {
      const float second = pairs_[d][lane].second;
      product *= (corner >> d & 1u) != 0 ? second : 1 - second;
    }
    return product;
  }

  // The lanes' texels at one corner of what they interpolate.
  void read(unsigned corner) {
    Lanes64 address{};
    std::uint32_t inside = 0;
    each_lane([&](unsigned l) {
      const std::array<std::uint64_t, 3> step{t_.texel_bytes(), t_.row_bytes, t_.slice_bytes};
      std::uint64_t at = t_.address;
      bool beyond = false;
      for (unsigned d = 0; d < flags_.dimensions; ++d) {
        const std::int64_t i = pairs_[d][l].at[corner >> d & 1u];
        beyond |= i == TexelPair::kBorder;
        at += static_cast<std::uint64_t>(i) * step[d];
      }
      address.v[l] = at;
      inside |= (beyond ? 0u : 1u) << l;
      if (beyond) texels_[l] = border();
    });
    if (inside == 0) return;
    switch (t_.texel_bytes()) {
      case 1: return load<1>(address, inside);
      case 2: return load<2>(address, inside);
      case 4: return load<4>(address, inside);
      case 8: return load<8>(address, inside);
      default: return load<16>(address, inside);
    }
  }

  template <unsigned kBytes>
  void load(const Lanes64& address, std::uint32_t lanes) {
    alignas(64) std::array<std::byte, kLanes * kBytes> data{};
    load_lanes<kBytes>(w_, Space::global, address.v, lanes, AccessKind::load, data.data());
    for (; lanes != 0; lanes &= lanes - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(lanes));
      texels_[l] = texel(data.data() + l * kBytes);
    }
  }

  Texel texel(const std::byte* from) const {
    Texel out{};
    for (unsigned c = 0; c < t_.channels; ++c) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, from + c * t_.channel_bits / 8u, t_.channel_bits / 8u);
      out[c] = value(bits);
    }
    return out;
  }

  std::uint32_t value(std::uint32_t bits) const {
    using enum TextureDescriptor::Element;
    const unsigned above = 32u - t_.channel_bits;
    if (t_.element == is_float) {
      return t_.channel_bits == 16 ? std::bit_cast<std::uint32_t>(widen(Half{bits})) : bits;
    }
    const auto extended = static_cast<std::int32_t>(bits << above) >> above;
    if (t_.as_float == 0)
      return t_.element == is_signed ? static_cast<std::uint32_t>(extended) : bits;
    const auto most = static_cast<float>((std::uint64_t{1} << t_.channel_bits) - 1);
    const float real = t_.element == is_signed
                           ? std::max(-1.0f, static_cast<float>(extended) / std::floor(most / 2))
                           : static_cast<float>(bits) / most;
    return std::bit_cast<std::uint32_t>(real);
  }

  // Colours beyond the edge are given as floats, whatever the texels are.
  Texel border() const {
    Texel out{};
    for (unsigned c = 0; c < t_.channels; ++c) {
      out[c] = t_.gives_float()
                   ? std::bit_cast<std::uint32_t>(t_.border[c])
                   : static_cast<std::uint32_t>(
                         to_integer<std::int64_t, Rounding::toward_zero>(t_.border[c]));
    }
    return out;
  }

  WarpRun& w_;
  const Instr& in_;
  const TextureFlags flags_;
  const TextureDescriptor& t_;
  std::uint32_t lanes_;
  std::array<std::array<TexelPair, kLanes>, 3> pairs_;  // by dimension
  std::array<Texel, kLanes> texels_{}, result_{};
};

TextureDescriptor descriptor_at(WarpRun& w, std::uint64_t handle, unsigned lane) {
  TextureDescriptor t;
  const std::byte* const bytes = w.block->grid->memory->data(handle, sizeof t);
  if (bytes != nullptr) std::memcpy(&t, bytes, sizeof t);
  if (bytes == nullptr || !t.sound())
    fail(w, FindingKind::trap, lane, "fetches from what is no texture object");
  return t;
}

void run_tex(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const TextureFlags flags = TextureFlags::decode(in.e);
  const Lanes64& handle = w.r64(w.extra[in.aux + 4]);
  for (std::uint32_t rest = w.active; rest != 0;) {
    const auto first = static_cast<unsigned>(std::countr_zero(rest));
    std::uint32_t same = 0;
    for (unsigned l = 0; l < kLanes; ++l) same |= (handle.v[l] == handle.v[first] ? 1u : 0u) << l;
    const TextureDescriptor t = descriptor_at(w, handle.v[first], first);
    if (t.dimensions != flags.dimensions)
      fail(w, FindingKind::trap, first, "fetches from a texture of another dimension");
    if (t.gives_float() != flags.float_result)
      fail(w, FindingKind::trap, first, "fetches texels of another type than the texture has");
    Fetch(w, in, t, rest & same).run();
    rest &= ~same;
  }
}

}  // namespace

std::optional<FlowSelection> select_texture(const ptx::Instruction& in) {
  if (in.opcode != "tex") return std::nullopt;
  TextureFlags flags;
  ModifierSequence m(in);
  flags.dimensions = m.take("1d") ? 1 : m.take("2d") ? 2 : m.take("3d") ? 3 : 0;
  if (flags.dimensions == 0) throw_unsupported(in);
  m.need("v4");
  flags.float_result = m.take("f32");
  if (!flags.float_result && !m.take("s32")) m.need("u32");
  flags.float_coordinates = m.take("f32");
  if (!flags.float_coordinates) m.need("s32");
  m.end();
  const bool coordinates_suffice = in.operands.size() == 2 && in.operands[1].elements.size() == 2 &&
                                   in.operands[1].elements[1].elements.size() >= flags.dimensions &&
                                   in.operands[0].elements.size() == 4;
  if (!coordinates_suffice) throw_unsupported(in);
  FlowSelection s;
  s.run = run_tex;
  s.cls = InstrClass::memory;
  s.e = flags.encode();
  s.operands = {OperandForm::dst32_list, OperandForm::coordinates};
  s.spread = Spread{Spread::Kind::none};
  return s;
}

}  // namespace assay::sim
