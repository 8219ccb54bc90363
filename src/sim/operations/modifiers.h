// The modifiers of an instruction, parsed.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "sim/ptx/ast.h"

namespace assay::sim {

// none if the text does not name a type ("f32").
ptx::Type type_named(std::string_view);
// The last modifier that names a type, which is the sources' type; none if there is none.
ptx::Type last_type(const ptx::Instruction&);

bool is_signed(ptx::Type);
// Bits of a register or value of this type; 1 for pred.
unsigned bits_of(ptx::Type);

bool has(const ptx::Instruction&, std::string_view modifier);
// Whether a modifier begins with `prefix`: "L1::".
bool has_prefix(const ptx::Instruction&, std::string_view prefix);

template <std::size_t n>
bool is_one_of(std::string_view name, const std::array<std::string_view, n>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The modifiers of ld, st, atom, red and similar instructions.
struct MemoryModifiers {
  ptx::Space space = ptx::Space::generic;
  ptx::Type type = ptx::Type::none;
  unsigned vector = 1;
  bool is_volatile = false;
  bool ordered = false;       // .relaxed, .acquire, .release, .acq_rel or .mmio: not .weak
  bool releases = false;      // .release, .acq_rel: also publishes what came before
  bool beyond_block = false;  // .cluster, .gpu or .sys, or no scope given
  bool cache_policy = false;  // .L2::cache_hint: one more operand
  bool uncached = false;      // .cv: read again each time
};

// nullopt if there is any other modifier.
std::optional<MemoryModifiers> memory_modifiers(const ptx::Instruction&);

}  // namespace assay::sim
