// Finds the handler of an arithmetic instruction by asking each family.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "sim/operations/alu_modifiers.h"
#include "sim/operations/instruction_set.h"

namespace assay::sim {
namespace {

constexpr std::string_view kOpcodes[] = {
    "abs",  "add",      "addc",      "and",       "bfe",  "bfi",  "bfind", "bmsk", "brev",  "clz",
    "cnot", "copysign", "cos",       "cvt",       "div",  "dp2a", "dp4a",  "ex2",  "fma",   "fns",
    "lg2",  "lop3",     "mad",       "mad24",     "madc", "max",  "min",   "mul",  "mul24", "neg",
    "not",  "or",       "popc",      "prmt",      "rcp",  "rem",  "rsqrt", "sad",  "selp",  "set",
    "setp", "shf",      "shl",       "shr",       "sin",  "slct", "sqrt",  "sub",  "subc",  "szext",
    "tanh", "testp",    "vabsdiff2", "vabsdiff4", "xor",
};

using Family = std::optional<Selection> (*)(Modifiers&);
constexpr Family kFamilies[] = {
    &select_carry, &select_integer, &select_bits,    &select_choice, &select_compare,
    &select_float, &select_special, &select_convert, &select_half,
};

}  // namespace

std::optional<Selection> select_alu(const ptx::Instruction& instruction) {
  if (std::ranges::find(kOpcodes, instruction.opcode) == std::end(kOpcodes)) {
    return std::nullopt;
  }
  for (const Family family : kFamilies) {
    Modifiers modifiers(instruction);
    if (std::optional<Selection> selection = family(modifiers)) return selection;
  }
  Modifiers(instruction).unsupported();
}

}  // namespace assay::sim
