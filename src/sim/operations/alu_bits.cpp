// Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions" and the bit field
// instructions of "Integer Arithmetic Instructions"); prmt.
#include <bit>

#include "sim/operations/alu_lanes.h"
#include "sim/operations/alu_modifiers.h"

namespace assay::sim {
namespace {

using std::int32_t, std::int64_t, std::uint16_t, std::uint32_t, std::uint64_t;

template <class T>
constexpr uint32_t kBits = sizeof(T) * 8;

template <class T>
struct And {
  static T apply(T a, T b) { return a & b; }
};
template <class T>
struct Or {
  static T apply(T a, T b) { return a | b; }
};
template <class T>
struct Xor {
  static T apply(T a, T b) { return a ^ b; }
};
template <class T>
struct Not {
  static T apply(T a) { return static_cast<T>(~a); }
};
template <class T>
struct Cnot {
  static T apply(T a) { return a == 0 ? 1 : 0; }
};

// Bit k of the table is the result for bits of a, b and c that form k.
struct Lop3 {
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b, uint32_t c,
                                               Immediate table) {
    const auto t = static_cast<uint32_t>(table.value);
    const auto choose = [](uint32_t bits, uint32_t one, uint32_t zero) {
      return zero ^ ((zero ^ one) & bits);
    };
    const auto all = [t](int k) { return ~uint32_t{0} * (t >> k & 1); };
    const uint32_t c00 = choose(c, all(1), all(0)), c01 = choose(c, all(3), all(2));
    const uint32_t c10 = choose(c, all(5), all(4)), c11 = choose(c, all(7), all(6));
    return choose(a, choose(b, c11, c10), choose(b, c01, c00));
  }
};

// Shifts by the width or more give the same as shifting bit by bit.
template <class T>
struct Shl {
  static T apply(T a, uint32_t n) {
    return n < kBits<T> ? static_cast<T>(a << (n & (kBits<T> - 1))) : T{0};
  }
};
template <class T>
struct Shr {
  static T apply(T a, uint32_t n) {
    const uint32_t within = n < kBits<T> ? n : kBits<T> - 1;
    const T shifted = static_cast<T>(a >> within);
    return std::is_signed_v<T> || n < kBits<T> ? shifted : T{0};
  }
};

// The funnel shifts of b:a.
[[gnu::always_inline]] inline uint64_t funnel(uint32_t a, uint32_t b) {
  return uint64_t{b} << 32 | a;
}
template <bool kWrap>
[[gnu::always_inline]] inline uint32_t funnel_amount(uint32_t c) {
  return kWrap ? c & 31 : (c < 32 ? c : 32);
}
template <bool kWrap>
struct ShfLeft {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>(funnel(a, b) << funnel_amount<kWrap>(c) >> 32);
  }
};
template <bool kWrap>
struct ShfRight {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>(funnel(a, b) >> funnel_amount<kWrap>(c));
  }
};

template <class T>
struct Popc {
  static uint32_t apply(T a) { return static_cast<uint32_t>(std::popcount(a)); }
};
template <class T>
struct Clz {
  static uint32_t apply(T a) { return static_cast<uint32_t>(std::countl_zero(a)); }
};
template <class T>
struct Brev {
  static T apply(T a) {
    constexpr T k1 = static_cast<T>(0x5555555555555555), k2 = static_cast<T>(0x3333333333333333),
                k4 = static_cast<T>(0x0f0f0f0f0f0f0f0f), k8 = static_cast<T>(0x00ff00ff00ff00ff),
                k16 = static_cast<T>(0x0000ffff0000ffff);
    a = (a >> 1 & k1) | (a & k1) << 1;
    a = (a >> 2 & k2) | (a & k2) << 2;
    a = (a >> 4 & k4) | (a & k4) << 4;
    a = (a >> 8 & k8) | (a & k8) << 8;
    a = (a >> 16 & k16) | (a & k16) << 16;
    if constexpr (sizeof(T) == 8) a = a >> 32 | a << 32;
    return a;
  }
};

// The position of the most significant bit that is not a copy of the sign; all ones if there is
// none.
template <class T, bool kShiftAmount>
struct Bfind {
  static uint32_t apply(T a) {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(a < 0 ? ~a : a);
    const auto zeros = static_cast<uint32_t>(std::countl_zero(bits));
    return bits == 0 ? ~uint32_t{0} : kShiftAmount ? zeros : kBits<T> - 1 - zeros;
  }
};
template <class T>
using BfindPosition = Bfind<T, false>;
template <class T>
using BfindShift = Bfind<T, true>;

// The position of the |offset|-th set bit from `base`, upwards if offset > 0; all ones if none.
struct Fns {
  static uint32_t apply(uint32_t mask, uint32_t base, int32_t offset) {
    if (base > 31) return ~uint32_t{0};
    if (offset == 0) return (mask >> base & 1) != 0 ? base : ~uint32_t{0};
    const int step = offset > 0 ? 1 : -1;
    int64_t left = offset > 0 ? int64_t{offset} : -int64_t{offset};
    for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
      if ((mask >> at & 1) != 0 && --left == 0) return static_cast<uint32_t>(at);
    }
    return ~uint32_t{0};
  }
};

template <class T>
[[gnu::always_inline]] inline T low_bits(uint32_t n) {  // n ones
  return n < kBits<T> ? static_cast<T>((T{1} << (n & (kBits<T> - 1))) - 1) : static_cast<T>(~T{0});
}

template <class T>
struct Bfe {
  static T apply(T a, uint32_t b, uint32_t c) {
    using U = std::make_unsigned_t<T>;
    constexpr uint32_t kTop = kBits<T> - 1;
    const uint32_t position = b & 0xff, length = c & 0xff;
    if constexpr (std::is_signed_v<T>) {
      // Shifts left until the field's last bit is on top, then right with copies of it.
      const uint32_t end = position + length < kBits<T> ? position + length : kBits<T>;
      const uint32_t left = (kBits<T> - end) & kTop;
      const uint32_t right = left + position < kTop ? left + position : kTop;
      const T field = static_cast<T>(static_cast<U>(a) << left) >> right;
      return length == 0 ? T{0} : field;
    } else {
      const T field = position < kBits<T> ? static_cast<T>(a >> (position & kTop)) : T{0};
      return field & low_bits<T>(length);
    }
  }
};

template <class T>
struct Bfi {
  static T apply(T a, T b, uint32_t c, uint32_t d) {
    const uint32_t position = c & 0xff;
    const T ones = low_bits<T>(d & 0xff);
    const T mask = Shl<T>::apply(ones, position);
    return static_cast<T>((b & ~mask) | (Shl<T>::apply(a, position) & mask));
  }
};

template <bool kWrap>
struct Bmsk {
  static uint32_t apply(uint32_t a, uint32_t b) {
    const uint32_t first = a & 31, end = first + (b & 31);
    const uint32_t from = ~uint32_t{0} << first;
    const uint32_t mask = end < 32 ? from & ~(~uint32_t{0} << (end & 31)) : from;
    if constexpr (kWrap) return mask;
    return a >= 32 ? 0 : b >= 32 ? from : mask;
  }
};

template <class T, bool kWrap>
struct Szext {
  static uint32_t apply(uint32_t a, uint32_t b) {
    const uint32_t width = b & 31;
    const uint32_t above = ~uint32_t{0} << width;
    const bool negative = std::is_signed_v<T> && width != 0 && (a >> ((width - 1) & 31) & 1) != 0;
    const uint32_t out = (a & ~above) | (negative ? above : 0);
    return !kWrap && b >= 32 ? a : out;
  }
};

// Each nibble of `selectors` names one of the eight bytes of b:a; its top bit requests copies of
// the byte's sign.
[[gnu::always_inline]] inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selectors) {
  const auto byte = [a, b, selectors](int i) {
    const uint32_t selector = selectors >> 4 * i;
    const uint32_t word = select((selector & 4) != 0, b, a);
    const uint32_t value = word >> 8 * (selector & 3) & 0xff;
    const uint32_t sign = (value >> 7) * 0xff;
    return select((selector & 8) != 0, sign, value) << 8 * i;
  };
  return byte(0) | byte(1) | byte(2) | byte(3);
}
struct Prmt {
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    return permute(a, b, c);
  }
};
// The special modes choose among four selectors by the low two bits of c.
struct PrmtMode {
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b, uint32_t c, Fixed table) {
    return permute(a, b, static_cast<uint32_t>(table.value >> 16 * (c & 3)) & 0xffff);
  }
};

// Logic on predicates.
void and_pred(Warp& w, const Instr& in) { w.set_pred(in.d, w.preds[in.a] & w.preds[in.b]); }
void or_pred(Warp& w, const Instr& in) { w.set_pred(in.d, w.preds[in.a] | w.preds[in.b]); }
void xor_pred(Warp& w, const Instr& in) { w.set_pred(in.d, w.preds[in.a] ^ w.preds[in.b]); }
void not_pred(Warp& w, const Instr& in) { w.set_pred(in.d, ~w.preds[in.a]); }

constexpr InstrClass kClass = InstrClass::integer;

Selection on_predicates(Handler handler, std::size_t sources) {
  Selection s;
  s.run = handler;
  s.cls = kClass;
  s.operands.assign(1 + sources, OperandForm::src_pred);
  s.operands[0] = OperandForm::dst_pred;
  return s;
}

template <template <class> class Op>
Selection select_logic(AluType type, Handler on_pred, std::size_t sources) {
  return type == AluType::pred ? on_predicates(on_pred, sources) : lanewise_bits<Op>(type);
}

template <template <bool> class Op>
Selection select_mode(Modifiers& m) {
  if (m.take("wrap")) return lanewise<Op<true>>(kClass);
  if (m.take("clamp")) return lanewise<Op<false>>(kClass);
  return {};
}
template <bool kWrap>
using SzextSigned = Szext<int32_t, kWrap>;
template <bool kWrap>
using SzextUnsigned = Szext<uint32_t, kWrap>;

template <template <class> class Op>
Selection lanewise_b32_b64(AluType type) {
  return type == AluType::b16 ? Selection{} : lanewise_bits<Op>(type);
}
template <template <class> class Op>
Selection lanewise_from_32(AluType type) {
  return bits_of(type) < 32 ? Selection{} : lanewise_integer<Op>(type);
}

Selection select_prmt(Modifiers& m) {
  constexpr std::pair<std::string_view, uint64_t> kModes[] = {
      {"f4e", 0x6543'5432'4321'3210}, {"b4e", 0x0123'7012'6701'5670},
      {"rc8", 0x3333'2222'1111'0000}, {"ecl", 0x3333'3222'3211'3210},
      {"ecr", 0x3210'2210'1110'0000}, {"rc16", 0x3232'1010'3232'1010},
  };
  for (const auto& [name, table] : kModes) {
    if (m.take(name)) return lanewise<PrmtMode>(kClass, 0, table);
  }
  return lanewise<Prmt>(kClass);
}

// lop3.and, lop3.or: d|p, a, b, c, table, q. p is whether d is not zero, combined with q.
template <bool kAnd>
void lop3_with_pred(Warp& w, const Instr& in) {
  const std::uint32_t* const slot = w.extra + in.aux;
  const Lanes32 &a = w.r32(slot[2]), &b = w.r32(slot[3]), &c = w.r32(slot[4]);
  const std::uint32_t q = w.preds[slot[5]];
  Lanes32 d;
  std::uint32_t nonzero = 0;
  for (unsigned l = 0; l < 32; ++l) {
    d.v[l] = Lop3::apply(a.v[l], b.v[l], c.v[l], Immediate{in.imm});
    nonzero |= (d.v[l] != 0 ? 1u : 0u) << l;
  }
  write_active(w, slot[0], d);
  w.set_pred(slot[1], kAnd ? nonzero & q : nonzero | q);
}

Selection select_lop3(Modifiers& m) {
  const bool with_and = m.take("and");
  if (!with_and && !m.take("or")) return lanewise<Lop3>(kClass);
  using Form = OperandForm;
  static constexpr Form kForms[] = {Form::dst32, Form::dst_pred,  Form::src32,   Form::src32,
                                    Form::src32, Form::immediate, Form::src_pred};
  Selection s =
      make_selection(with_and ? lop3_with_pred<true> : lop3_with_pred<false>, kForms, kClass, 0, 0);
  s.uses_extra = true;
  return s;
}

// Instructions that only have the type b32.
std::optional<Selection> select_b32(Modifiers& m) {
  const std::string_view op = m.opcode();
  if (op == "lop3") return select_lop3(m);
  if (op == "shf")
    return m.take("l")   ? select_mode<ShfLeft>(m)
           : m.take("r") ? select_mode<ShfRight>(m)
                         : Selection{};
  if (op == "prmt") return select_prmt(m);
  if (op == "bmsk") return select_mode<Bmsk>(m);
  if (op == "fns") return lanewise<Fns>(kClass);
  return std::nullopt;
}

}  // namespace

std::optional<Selection> select_bits(Modifiers& m) {
  const std::string_view op = m.opcode();
  const AluType type = m.type();
  if (const std::optional<Selection> s = select_b32(m)) {
    if (type != AluType::b32) m.unsupported();
    return m.finish(*s);
  }
  Selection s;
  if (op == "and") {
    s = select_logic<And>(type, &and_pred, 2);
  } else if (op == "or") {
    s = select_logic<Or>(type, &or_pred, 2);
  } else if (op == "xor") {
    s = select_logic<Xor>(type, &xor_pred, 2);
  } else if (op == "not") {
    s = select_logic<Not>(type, &not_pred, 1);
  } else if (op == "cnot") {
    s = lanewise_bits<Cnot>(type);
  } else if (op == "shl") {
    s = lanewise_bits<Shl>(type);
  } else if (op == "shr") {
    s = is_integer(type) ? lanewise_integer<Shr>(type) : lanewise_bits<Shr>(type);
  } else if (op == "popc") {
    s = lanewise_b32_b64<Popc>(type);
  } else if (op == "clz") {
    s = lanewise_b32_b64<Clz>(type);
  } else if (op == "brev") {
    s = lanewise_b32_b64<Brev>(type);
  } else if (op == "bfi") {
    s = lanewise_b32_b64<Bfi>(type);
  } else if (op == "bfe") {
    s = lanewise_from_32<Bfe>(type);
  } else if (op == "bfind") {
    s = m.take("shiftamt") ? lanewise_from_32<BfindShift>(type)
                           : lanewise_from_32<BfindPosition>(type);
  } else if (op == "szext") {
    if (bits_of(type) != 32 || !is_integer(type)) m.unsupported();
    s = is_signed(type) ? select_mode<SzextSigned>(m) : select_mode<SzextUnsigned>(m);
  } else {
    return std::nullopt;
  }
  return m.finish(s);
}

}  // namespace assay::sim
