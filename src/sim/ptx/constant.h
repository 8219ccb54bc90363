// Literals and constant expressions: PTX ISA, "Constants".
#pragma once

#include <cstdint>

#include "sim/ptx/cursor.h"

namespace assay::sim::ptx {

struct Constant {
  enum class Kind : std::uint8_t { integer, real32, real64 };
  Kind kind = Kind::integer;
  bool is_unsigned = false;  // for integers: .u64, else .s64
  std::uint64_t bits = 0;
};

// Whether this token begins a constant where an operand is expected: a number, a sign or ~. (There,
// '(' begins a list for some instructions, and ! is for predicates.)
bool begins_constant(const Token&);

// An integer expression, evaluated in 64 bits with the types of the ISA, or a real literal with its
// sign.
Constant parse_constant(Cursor&);

// The sum of the terms after a name in "name+8-4"; 0 if there are none.
std::int64_t parse_offset(Cursor&);

}  // namespace assay::sim::ptx
