#include "sim/decode/price.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/operations/modifiers.h"

namespace assay::sim {
namespace {

using ptx::Type;

struct Amount {
  Unit unit;
  unsigned count;
};

std::uint8_t& at(InstrPrice& p, Unit u) { return p.of[static_cast<std::size_t>(u)]; }

InstrPrice price(std::initializer_list<Amount> amounts) {
  InstrPrice p;
  unsigned issued = 0;
  for (const Amount& a : amounts) {
    at(p, a.unit) = static_cast<std::uint8_t>(a.count);
    issued += a.unit == Unit::issue || a.unit == Unit::constant ? 0 : a.count;
  }
  at(p, Unit::issue) = static_cast<std::uint8_t>(std::max(issued, 1u));
  return p;
}

bool is_wide(const ptx::Instruction& in) {
  const Type t = last_type(in);
  return ptx::size_of(t) == 8;
}

InstrPrice of_integer(const ptx::Instruction& in) {
  const bool wide = is_wide(in);
  if (in.opcode == "div" || in.opcode == "rem") {
    // Division by a constant: a multiplication and a shift. A 64-bit division takes the 32-bit path
    // if both values fit.
    const bool constant =
        in.operands.size() == 3 && in.operands[2].kind == ptx::Operand::Kind::integer;
    if (constant) return price({{Unit::integer, wide ? 4u : 2u}});
    return price({{Unit::integer, wide ? 16u : 12u}, {Unit::special, 1}, {Unit::conversion, 2}});
  }
  static constexpr std::array<std::string_view, 4> kCounting{"popc", "clz", "brev", "bfind"};
  if (is_one_of(in.opcode, kCounting)) {
    return wide ? price({{Unit::special, 2}, {Unit::integer, 1}}) : price({{Unit::special, 1}});
  }
  if (in.opcode == "fns") return price({{Unit::special, 2}, {Unit::integer, 4}});
  if (in.opcode == "mul" || in.opcode == "mad") {
    if (has(in, "wide") || !wide) return price({{Unit::integer, 1}});
    return price({{Unit::integer, has(in, "hi") ? 4u : 3u}});
  }
  return price({{Unit::integer, wide ? 2u : 1u}});
}

// Newton iterations after a first approximation, and the tests for special cases.
InstrPrice of_fp32(const ptx::Instruction& in) {
  if (in.opcode == "div") return price({{Unit::fp32, 7}, {Unit::special, 1}});
  if (in.opcode == "sqrt") return price({{Unit::fp32, 5}, {Unit::special, 1}});
  if (in.opcode == "rcp") return price({{Unit::fp32, 3}, {Unit::special, 1}});
  return price({{Unit::fp32, 1}});
}

InstrPrice of_fp64(const ptx::Instruction& in) {
  if (in.opcode == "div" || in.opcode == "sqrt")
    return price({{Unit::fp64, 7}, {Unit::special, 1}});
  if (in.opcode == "rcp") return price({{Unit::fp64, 5}, {Unit::special, 1}});
  return price({{Unit::fp64, 1}});
}

InstrPrice of_special(const ptx::Instruction& in) {
  const bool wide = is_wide(in), flushed = has(in, "ftz");
  if (wide && !flushed) return price({{Unit::special, 1}, {Unit::fp64, 4}});
  if (in.opcode == "div") return price({{Unit::special, 1}, {Unit::fp32, 1}});
  return price({{Unit::special, 1}});
}

InstrPrice of_conversion(const ptx::Instruction& in) {
  bool floating = false, wide = false, f64 = false;
  for (const std::string& m : in.modifiers) {
    const Type t = type_named(m);
    if (t == Type::none) {  // e4m3x2 and the like are not register types
      floating |= m.size() > 2 && m[0] == 'e' && m[2] == 'm';
      floating |= m == "tf32";
      continue;
    }
    floating |= t >= Type::f16;
    f64 |= t == Type::f64;
    wide |= ptx::size_of(t) == 8;
  }
  if (!floating) return price({{Unit::integer, 1}});
  if (f64) return price({{Unit::special, 1}, {Unit::fp64, 1}});
  return wide ? price({{Unit::special, 1}, {Unit::conversion, 1}}) : price({{Unit::conversion, 1}});
}

InstrPrice of_warp(const ptx::Instruction& in) {
  if (in.opcode == "vote" || in.opcode == "activemask" || in.opcode == "elect") {
    return price({{Unit::integer, 1}});
  }
  // 16 lanes per clock, half as many as for a shuffle.
  if (in.opcode == "redux" || in.opcode == "match") return price({{Unit::load_store, 2}});
  return price({{Unit::load_store, 1}});
}

Unit tensor_unit(const ptx::Instruction& in) {
  const auto any = [&](auto... names) { return (has(in, names) || ...); };
  if (in.opcode == "wgmma")
    return any("s8", "u8") ? Unit::warpgroup_s8
           : any("tf32")   ? Unit::warpgroup_tf32
                           : Unit::warpgroup_f16;
  if (any("b1")) return Unit::tensor_b1;
  if (any("s4", "u4")) return Unit::tensor_s4;
  if (any("s8", "u8")) return Unit::tensor_s8;
  if (any("e4m3", "e5m2")) return Unit::tensor_f8;
  if (any("tf32")) return Unit::tensor_tf32;
  if (any("f64")) return Unit::tensor_f64;
  return Unit::tensor_f16;
}

// Kernel parameters are stored with the constants.
InstrPrice of_other(const ptx::Instruction& in) {
  if (in.opcode == "ld" && has(in, "param")) return price({{Unit::constant, 1}});
  return price({});
}

}  // namespace

InstrPrice price_of(const ptx::Instruction& in, InstrClass cls) {
  switch (cls) {
    case InstrClass::integer: return of_integer(in);
    case InstrClass::fp32: return of_fp32(in);
    case InstrClass::fp16: return price({{Unit::fp16, 1}});
    case InstrClass::fp64: return of_fp64(in);
    case InstrClass::special: return of_special(in);
    case InstrClass::conversion: return of_conversion(in);
    case InstrClass::memory: return price({{Unit::load_store, 1}});
    case InstrClass::warp: return of_warp(in);
    case InstrClass::tensor: {
      InstrPrice p = price({});
      p.tensor = tensor_unit(in);
      return p;
    }
    case InstrClass::control:
    case InstrClass::other: break;
  }
  return of_other(in);
}

UnitWork work_of(const InstrInfo& info) {
  UnitWork work;
  std::copy(info.price.of.begin(), info.price.of.end(), work.of.begin());
  work[info.price.tensor] += info.tensor_flops;
  return work;
}

}  // namespace assay::sim
