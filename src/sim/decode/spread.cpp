#include "sim/decode/spread.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/operations/modifiers.h"

namespace assay::sim {
namespace {

using ptx::Type;
using Kind = Spread::Kind;

// Operations that work on single bits or move them.
constexpr std::array<std::string_view, 20> kBits{
    "and",  "or",   "xor",  "not",   "lop3", "shl",      "shr",  "shf",  "bfe",       "bfi",
    "prmt", "brev", "selp", "szext", "bmsk", "copysign", "shfl", "vote", "movmatrix", "elect"};
constexpr std::array<std::string_view, 4> kSums{"add", "sub", "mul", "mad"};
constexpr std::array<std::string_view, 5> kComputing{"match", "redux", "mma", "vabsdiff2",
                                                     "vabsdiff4"};

bool is_integer(Type t) { return t >= Type::b8 && t <= Type::s64; }

std::uint8_t width_of(const ptx::Instruction& in) {
  const unsigned bits = bits_of(last_type(in));
  return static_cast<std::uint8_t>(bits == 0 || bits > 64 ? 64 : bits);
}

Spread spread_of_conversion(const ptx::Instruction& in) {
  bool integers = true;
  std::size_t types = 0;
  for (const std::string& m : in.modifiers) {
    const Type t = type_named(m);
    if (t == Type::none) continue;
    ++types;
    integers = integers && is_integer(t);
  }
  const bool moves = integers && types == 2 && in.modifiers.size() == 2;
  return {moves ? Kind::bits : Kind::values};
}

Spread of_comparison(const ptx::Instruction& in) {
  Spread s{Kind::compare, width_of(in)};
  if (is_integer(last_type(in)) && (has(in, "eq") || has(in, "ne"))) s.flags |= Spread::kEquality;
  if (has(in, "and")) s.flags |= Spread::kAnd;
  if (has(in, "or")) s.flags |= Spread::kOr;
  if (has(in, "xor")) s.flags |= Spread::kOther;
  return s;
}

Spread of_memory(const ptx::Instruction& in) {
  if (in.opcode == "ld" || in.opcode == "ldu" || in.opcode == "ldmatrix") return {Kind::load};
  if (in.opcode == "st" || in.opcode == "stmatrix") return {Kind::store};
  if (in.opcode == "wmma") return {has(in, "load") ? Kind::load : Kind::store};
  if (in.opcode == "atom" || in.opcode == "red") {
    return {has(in, "exch") ? Kind::exchange : Kind::atomic};
  }
  return {Kind::none};
}

}  // namespace

Spread spread_of(const ptx::Instruction& in, InstrClass cls) {
  if (in.opcode == "mov") return {Kind::copy};
  if (in.opcode == "cvta") return {Kind::upwards};
  if (is_one_of(in.opcode, kBits)) return {Kind::bits};
  if (in.opcode == "cvt") return spread_of_conversion(in);
  if (in.opcode == "setp") return of_comparison(in);
  if (cls == InstrClass::tensor || is_one_of(in.opcode, kComputing)) return {Kind::values};
  if (cls == InstrClass::memory) return of_memory(in);
  const bool part = has(in, "hi") || has(in, "wide") || has(in, "sat") || has(in, "cc");
  if (is_one_of(in.opcode, kSums) && is_integer(last_type(in)) && !part) {
    return {Kind::upwards, width_of(in)};
  }
  if (cls == InstrClass::control) return {Kind::none};
  return {Kind::whole, width_of(in)};
}

}  // namespace assay::sim
