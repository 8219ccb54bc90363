// cvt to and from pairs of 8-bit floating-point values, .e4m3x2 and .e5m2x2 (PTX ISA, "cvt"). The
// first of two operands goes to the upper half. Values that are too large become the largest:
// .satfinite, which every such instruction has.
#include <algorithm>
#include <string_view>

#include "sim/operations/alu_convert.h"

namespace assay::sim {
namespace {

using std::uint16_t, std::uint32_t;

constexpr InstrClass kClass = InstrClass::conversion;

template <class F8, class Flags>
[[gnu::always_inline]] inline uint16_t packed(float upper, float lower, Flags flags) {
  const auto one = [&](float x) { return to_fp8<F8>(select(flags.relu, relu(x), x)); };
  return static_cast<uint16_t>(one(upper) << 8 | one(lower));
}

template <class F8, class Flags>
struct FromFloats {
  [[gnu::always_inline]] static uint16_t apply(float a, float b, Fixed fixed) {
    return packed<F8>(a, b, Flags(fixed));
  }
};
template <class F8, class Flags>
struct FromHalves {
  [[gnu::always_inline]] static uint16_t apply(Pair<Half> a, Fixed fixed) {
    return packed<F8>(widen(high_half(a)), widen(low_half(a)), Flags(fixed));
  }
};
template <class F8, class Flags>
struct ToHalves {
  [[gnu::always_inline]] static Pair<Half> apply(uint16_t a, Fixed fixed) {
    const Flags flags(fixed);
    const auto one = [&](uint32_t x) {
      const float value = widen_fp8<F8>(x);
      return to_half<Half>(select(flags.relu, relu(value), value));
    };
    return pair_of(one(a & 0xffu), one(a >> 8));
  }
};

template <template <class...> class Op, class F8>
Selection flagged(std::uint64_t flags) {
  return with_flags(flags,
                    [&]<class Flags>(Flags*) { return lanewise<Op<F8, Flags>>(kClass, 0, flags); });
}

// Whether `word` is the destination type.
bool comes_first(const ptx::Instruction& in, std::string_view word) {
  const auto at = [&](std::string_view w) {
    return std::find(in.modifiers.begin(), in.modifiers.end(), w);
  };
  return at(word) < std::min(at("f32"), at("f16x2"));
}

template <class F8>
Selection choose(Modifiers& m, bool to) {
  const std::uint64_t flags = m.take("relu") ? ConvertFlags::kRelu : 0;
  if (!m.take("rn") || (to && !m.take("satfinite"))) m.unsupported();
  Selection s;
  if (to && m.type() == AluType::f32) s = flagged<FromFloats, F8>(flags);
  if (to && m.type() == AluType::f16x2) s = flagged<FromHalves, F8>(flags);
  if (!to && m.type() == AluType::f16x2) s = flagged<ToHalves, F8>(flags);
  return m.finish(s);
}

}  // namespace

std::optional<Selection> select_convert_fp8(Modifiers& m) {
  for (const std::string_view type : {"e4m3x2", "e5m2x2"}) {
    if (!m.take(type)) continue;
    const bool to = comes_first(m.instruction(), type);
    return type == "e4m3x2" ? choose<E4m3>(m, to) : choose<E5m2>(m, to);
  }
  return std::nullopt;
}

}  // namespace assay::sim
