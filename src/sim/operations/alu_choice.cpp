// Selection between two values: selp, slct (PTX ISA, "Comparison and Selection Instructions").
#include "sim/operations/alu_lanes.h"
#include "sim/operations/alu_modifiers.h"

namespace assay::sim {
namespace {

template <class T>
struct Selp {
  static T apply(T a, T b, bool c) { return blend<T>(-static_cast<std::uint32_t>(c), a, b); }
};
template <class T>
struct SlctInteger {
  static T apply(T a, T b, std::int32_t c) { return c >= 0 ? a : b; }
};
// -0 counts as 0, NaN selects b. A negative subnormal is flushed to -0.
template <class T, bool kFtz>
struct SlctFloat {
  static T apply(T a, T b, float c) { return (kFtz ? flush(c) : c) >= 0 ? a : b; }
};
template <class T>
using SlctKeep = SlctFloat<T, false>;
template <class T>
using SlctFlush = SlctFloat<T, true>;

template <template <class> class Op>
Selection by_width(AluType type) {
  switch (type == AluType::tf32 || type == AluType::pred ? 0 : bits_of(type)) {
    case 16: return lanewise<Op<std::uint16_t>>(InstrClass::integer);
    case 32: return lanewise<Op<std::uint32_t>>(InstrClass::integer);
    case 64: return lanewise<Op<std::uint64_t>>(InstrClass::integer);
    default: return {};
  }
}

}  // namespace

std::optional<Selection> select_choice(Modifiers& m) {
  if (m.opcode() == "selp") return m.finish(by_width<Selp>(m.type()));
  if (m.opcode() != "slct") return std::nullopt;
  if (m.type(1) == AluType::s32) return m.finish(by_width<SlctInteger>(m.type()), 2);
  if (m.type(1) != AluType::f32) m.unsupported();
  return m.finish(m.take("ftz") ? by_width<SlctFlush>(m.type()) : by_width<SlctKeep>(m.type()), 2);
}

}  // namespace assay::sim
