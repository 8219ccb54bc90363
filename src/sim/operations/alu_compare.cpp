// Comparisons: setp, set, testp (PTX ISA, "Comparison and Selection Instructions" and "Half
// Precision Comparison Instructions").
#include <array>
#include <utility>

#include "sim/operations/alu_lanes.h"
#include "sim/operations/alu_modifiers.h"

namespace assay::sim {
namespace {

using std::int16_t, std::int32_t, std::int64_t, std::uint16_t, std::uint32_t, std::uint64_t;

enum class Relation : std::uint8_t {
  eq,
  ne,
  lt,
  le,
  gt,
  ge,  // false if an operand is NaN
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,  // true if an operand is NaN
  num,
  nan,  // whether neither, or one, is NaN
};

template <Relation kRelation, class T>
[[gnu::always_inline]] inline bool compare(T a, T b) {
  const bool unordered = a != a || b != b;
  switch (kRelation) {
    case Relation::eq: return a == b;
    case Relation::ne: return !unordered && a != b;
    case Relation::lt: return a < b;
    case Relation::le: return a <= b;
    case Relation::gt: return a > b;
    case Relation::ge: return a >= b;
    case Relation::equ: return unordered || a == b;
    case Relation::neu: return a != b;
    case Relation::ltu: return !(a >= b);
    case Relation::leu: return !(a > b);
    case Relation::gtu: return !(a <= b);
    case Relation::geu: return !(a < b);
    case Relation::num: return !unordered;
    case Relation::nan: return unordered;
  }
  return false;
}

// The value to compare.
template <class T, bool kFtz>
[[gnu::always_inline]] inline auto comparand(T x) {
  if constexpr (is_half<T>) {
    return widen(kFtz ? flush_half(x) : x);
  } else if constexpr (kFtz) {
    return flush(x);
  } else {
    return x;
  }
}

// The lanes (active or not) in which the relation holds.
template <class T, Relation kRelation, bool kFtz>
[[gnu::always_inline]] inline uint32_t holds(Warp& w, const Instr& in) {
  const Source<T> a(w, in, in.a), b(w, in, in.b);
  Lanes32 result;
#pragma omp simd
  for (int l = 0; l < 32; ++l) {
    const bool is = compare<kRelation>(comparand<T, kFtz>(a[l]), comparand<T, kFtz>(b[l]));
    result.v[l] = is ? ~uint32_t{0} : 0;
  }
  return to_mask(result);
}
// For packed types, both halves.
struct Both {
  uint32_t low, high;
};
template <class T, Relation kRelation, bool kFtz>
[[gnu::always_inline]] inline Both holds_in_halves(Warp& w, const Instr& in) {
  const Source<Pair<T>> a(w, in, in.a), b(w, in, in.b);
  Lanes32 low, high;
#pragma omp simd
  for (int l = 0; l < 32; ++l) {
    const Pair<T> x = a[l], y = b[l];
    const bool in_low =
        compare<kRelation>(comparand<T, kFtz>(low_half(x)), comparand<T, kFtz>(low_half(y)));
    const bool in_high =
        compare<kRelation>(comparand<T, kFtz>(high_half(x)), comparand<T, kFtz>(high_half(y)));
    low.v[l] = in_low ? ~uint32_t{0} : 0;
    high.v[l] = in_high ? ~uint32_t{0} : 0;
  }
  return {to_mask(low), to_mask(high)};
}

// Instr::imm for more than a plain setp: bits 0 and 1 the boolean operator, bit 2 whether there is
// a second destination; from bit 32 on the value that `set` writes for true. The operand c of the
// operator arrives complemented if the instruction says !c.
constexpr uint64_t kAnd = 1, kOr = 2, kXor = 3, kSecond = 4;

uint32_t combine(Warp& w, const Instr& in, uint32_t result) {
  if ((in.imm & 3) == 0) return result;
  const uint32_t c = w.preds[in.c];
  switch (in.imm & 3) {
    case kAnd: return result & c;
    case kOr: return result | c;
    default: return result ^ c;
  }
}

template <class T, Relation kRelation, bool kFtz>
struct Scalar {
  static void plain(Warp& w, const Instr& in) {
    w.set_pred(in.d, holds<T, kRelation, kFtz>(w, in));
  }

  static void combined(Warp& w, const Instr& in) {
    const uint32_t is = holds<T, kRelation, kFtz>(w, in);
    // Computes both before writing either, because c may be a destination.
    const uint32_t first = combine(w, in, is), second = combine(w, in, ~is);
    w.set_pred(in.d, first);
    if ((in.imm & kSecond) != 0) w.set_pred(in.e, second);
  }

  static void set(Warp& w, const Instr& in) {
    const uint32_t is = combine(w, in, holds<T, kRelation, kFtz>(w, in));
    const auto one = static_cast<uint32_t>(in.imm >> 32);
    Lanes32 out;
    for (int l = 0; l < 32; ++l) out.v[l] = one & (0 - (is >> l & 1));
    write_active(w, in.d, out);
  }
};

// The two destinations of setp are the two halves' results.
template <class T, Relation kRelation, bool kFtz>
struct Halves {
  static void combined(Warp& w, const Instr& in) {
    const Both is = holds_in_halves<T, kRelation, kFtz>(w, in);
    const uint32_t first = combine(w, in, is.low), second = combine(w, in, is.high);
    w.set_pred(in.d, first);
    if ((in.imm & kSecond) != 0) w.set_pred(in.e, second);
  }
  static constexpr Handler plain = &combined;

  static void set(Warp& w, const Instr& in) {
    const Both is = holds_in_halves<T, kRelation, kFtz>(w, in);
    const uint32_t first = combine(w, in, is.low), second = combine(w, in, is.high);
    const auto one = static_cast<uint32_t>(in.imm >> 32);
    Lanes32 out;
    for (int l = 0; l < 32; ++l) {
      out.v[l] =
          (one & 0xffff & (0 - (first >> l & 1))) | (one & 0xffff0000 & (0 - (second >> l & 1)));
    }
    write_active(w, in.d, out);
  }
};

struct Handlers {
  Handler plain = nullptr, combined = nullptr, set = nullptr;
};
template <class Kernel>
constexpr Handlers handlers_of() {
  return {Kernel::plain, &Kernel::combined, &Kernel::set};
}

// Indexed by Relation; integers have the first six.
template <template <class, Relation, bool> class Kernel, class T, bool kFtz, std::size_t... I>
Handlers pick(Relation relation, std::index_sequence<I...>) {
  static constexpr std::array<Handlers, sizeof...(I)> kTable = {
      handlers_of<Kernel<T, static_cast<Relation>(I), kFtz>>()...};
  const auto index = static_cast<std::size_t>(relation);
  return index < kTable.size() ? kTable[index] : Handlers{};
}
template <class T>
Handlers of_integer(Relation relation) {
  return pick<Scalar, T, false>(relation, std::make_index_sequence<6>());
}
template <template <class, Relation, bool> class Kernel, class T>
Handlers of_float(Relation relation, bool ftz) {
  using All = std::make_index_sequence<14>;
  return ftz ? pick<Kernel, T, true>(relation, All()) : pick<Kernel, T, false>(relation, All());
}

Handlers handlers_for(AluType type, Relation relation, bool ftz) {
  switch (type) {
    case AluType::f16: return of_float<Scalar, Half>(relation, ftz);
    case AluType::f16x2: return of_float<Halves, Half>(relation, ftz);
    case AluType::f32: return of_float<Scalar, float>(relation, ftz);
    default: break;
  }
  if (ftz) return {};
  using All = std::make_index_sequence<14>;
  switch (type) {
    case AluType::bf16: return pick<Scalar, Bfloat, false>(relation, All());
    case AluType::bf16x2: return pick<Halves, Bfloat, false>(relation, All());
    case AluType::f64: return pick<Scalar, double, false>(relation, All());
    case AluType::b16:
      return relation <= Relation::ne ? of_integer<uint16_t>(relation) : Handlers{};
    case AluType::b32:
      return relation <= Relation::ne ? of_integer<uint32_t>(relation) : Handlers{};
    case AluType::b64:
      return relation <= Relation::ne ? of_integer<uint64_t>(relation) : Handlers{};
    case AluType::u16: return of_integer<uint16_t>(relation);
    case AluType::s16: return of_integer<int16_t>(relation);
    case AluType::u32: return of_integer<uint32_t>(relation);
    case AluType::s32: return of_integer<int32_t>(relation);
    case AluType::u64: return of_integer<uint64_t>(relation);
    case AluType::s64: return of_integer<int64_t>(relation);
    default: return {};
  }
}

std::optional<Relation> take_relation(Modifiers& m, AluType type) {
  constexpr std::pair<std::string_view, Relation> kNames[] = {
      {"eq", Relation::eq},   {"ne", Relation::ne},   {"lt", Relation::lt},
      {"le", Relation::le},   {"gt", Relation::gt},   {"ge", Relation::ge},
      {"equ", Relation::equ}, {"neu", Relation::neu}, {"ltu", Relation::ltu},
      {"leu", Relation::leu}, {"gtu", Relation::gtu}, {"geu", Relation::geu},
      {"num", Relation::num}, {"nan", Relation::nan},
  };
  for (const auto& [name, relation] : kNames) {
    if (m.take(name)) return relation;
  }
  // Other names for unsigned comparisons.
  if (!is_integer(type) || is_signed(type)) return std::nullopt;
  if (m.take("lo")) return Relation::lt;
  if (m.take("ls")) return Relation::le;
  if (m.take("hi")) return Relation::gt;
  if (m.take("hs")) return Relation::ge;
  return std::nullopt;
}

InstrClass class_of(AluType type) {
  switch (type) {
    case AluType::f32: return InstrClass::fp32;
    case AluType::f64: return InstrClass::fp64;
    case AluType::f16:
    case AluType::f16x2:
    case AluType::bf16:
    case AluType::bf16x2: return InstrClass::fp16;
    default: return InstrClass::integer;
  }
}

// The operands after the destinations, and the boolean operator.
void add_operands(Modifiers& m, AluType type, Selection& s) {
  const OperandForm source = bits_of(type) == 64 ? OperandForm::src64 : OperandForm::src32;
  s.operands.insert(s.operands.end(), {source, source});
  for (const auto& [name, code] :
       {std::pair{"and", kAnd}, std::pair{"or", kOr}, std::pair{"xor", kXor}}) {
    if (!m.take(name)) continue;
    s.operands.push_back(OperandForm::src_pred);
    s.imm |= code;
    return;
  }
}

// The value that `set` writes for true: 1 as a number of the destination's type, or all ones for an
// integer.
uint32_t true_value(AluType to, AluType from) {
  const bool half_source = class_of(from) == InstrClass::fp16;
  switch (to) {
    case AluType::u32:
    case AluType::s32: return 0xffffffff;
    case AluType::f32: return 0x3f800000;
    case AluType::u16:
    case AluType::s16: return half_source ? 0xffff : 0;
    case AluType::f16: return 0x3c00;
    case AluType::bf16: return 0x3f80;
    case AluType::f16x2: return from == AluType::f16x2 ? 0x3c003c00 : 0;
    case AluType::bf16x2: return from == AluType::bf16x2 ? 0x3f803f80 : 0;
    default: return 0;
  }
}

Selection select_set(Modifiers& m) {
  const AluType to = m.type(0), from = m.type(1);
  const std::optional<Relation> relation = take_relation(m, from);
  const uint32_t one = true_value(to, from);
  // A packed source gives one result per half, so it needs a 32-bit destination other than f32.
  const bool packed = from == AluType::f16x2 || from == AluType::bf16x2;
  if (!relation || one == 0 || (packed && (bits_of(to) != 32 || to == AluType::f32))) {
    m.unsupported();
  }
  Selection s;
  s.cls = class_of(from);
  s.operands = {OperandForm::dst32};
  add_operands(m, from, s);
  s.imm |= uint64_t{one} << 32;
  s.run = handlers_for(from, *relation, m.take("ftz")).set;
  return m.finish(s, 2);
}

Selection select_setp(Modifiers& m) {
  const AluType type = m.type();
  const std::optional<Relation> relation = take_relation(m, type);
  if (!relation) m.unsupported();
  Selection s;
  s.cls = class_of(type);
  s.operands = {OperandForm::dst_pred};
  if (m.instruction().paired) {
    s.operands.push_back(OperandForm::dst_pred);
    s.imm |= kSecond;
  }
  add_operands(m, type, s);
  const Handlers handlers = handlers_for(type, *relation, m.take("ftz"));
  s.run = s.imm == 0 ? handlers.plain : handlers.combined;
  return m.finish(s);
}

enum class Property : std::uint8_t { finite, infinite, number, notanumber, normal, subnormal };

template <class Bits, Property kProperty>
void test(Warp& w, const Instr& in) {
  using Word = typename Bits::Word;
  const Source<Word> a(w, in, in.a);
  Lanes32 result;
#pragma omp simd
  for (int l = 0; l < 32; ++l) {
    const Word magnitude = a[l] & (Bits::sign - 1);
    const bool small = magnitude < Bits::min_normal && magnitude != 0;
    bool is = false;
    switch (kProperty) {
      case Property::finite: is = magnitude < Bits::infinity; break;
      case Property::infinite: is = magnitude == Bits::infinity; break;
      case Property::number: is = magnitude <= Bits::infinity; break;
      case Property::notanumber: is = magnitude > Bits::infinity; break;
      case Property::normal:
        is = magnitude < Bits::infinity && !small;
        break;  // zero counts as
                // well
      case Property::subnormal: is = small; break;
    }
    result.v[l] = is ? ~uint32_t{0} : 0;
  }
  w.set_pred(in.d, to_mask(result));
}

template <class Bits>
Handler select_property(Modifiers& m) {
  if (m.take("finite")) return &test<Bits, Property::finite>;
  if (m.take("infinite")) return &test<Bits, Property::infinite>;
  if (m.take("number")) return &test<Bits, Property::number>;
  if (m.take("notanumber")) return &test<Bits, Property::notanumber>;
  if (m.take("normal")) return &test<Bits, Property::normal>;
  if (m.take("subnormal")) return &test<Bits, Property::subnormal>;
  return nullptr;
}

Selection select_testp(Modifiers& m) {
  const AluType type = m.type();
  Selection s;
  s.cls = class_of(type);
  s.operands = {OperandForm::dst_pred,
                type == AluType::f64 ? OperandForm::src64 : OperandForm::src32};
  if (type == AluType::f32) s.run = select_property<F32>(m);
  if (type == AluType::f64) s.run = select_property<F64>(m);
  return m.finish(s);
}

}  // namespace

std::optional<Selection> select_compare(Modifiers& m) {
  if (m.opcode() == "setp") return select_setp(m);
  if (m.opcode() == "set") return select_set(m);
  if (m.opcode() == "testp") return select_testp(m);
  return std::nullopt;
}

}  // namespace assay::sim
