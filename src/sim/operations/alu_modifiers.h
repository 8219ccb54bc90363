// The modifiers of an arithmetic instruction, parsed. Each family in alu_*.cpp takes those that it
// implements; a modifier that none takes makes the instruction unsupported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/math/formats.h"
#include "sim/operations/instruction_set.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

// The types that modifiers of arithmetic instructions name.
enum class AluType : std::uint8_t {
  none,
  pred,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  u16x2,
  s16x2,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  f32,
  f64,
};

bool is_integer(AluType);  // u8 to s64, not b*, not packed
bool is_signed(AluType);   // s8 to s64
int bits_of(AluType);      // for scalar types; 0 for none and pred

class Modifiers {
 public:
  explicit Modifiers(const ptx::Instruction&);

  const ptx::Instruction& instruction() const { return instruction_; }
  std::string_view opcode() const { return instruction_.opcode; }

  // The types in order: type() is the first, as in "add.f32"; for "cvt.rn.f32.s32", type(1) is s32.
  AluType type(std::size_t index = 0) const;
  std::size_t types() const { return types_.size(); }

  // Whether `word` is among the modifiers; marks it as understood.
  bool take(std::string_view word);
  // Likewise for .rn .rz .rm .rp, and for .rni .rzi .rmi .rpi.
  std::optional<Rounding> take_rounding();
  std::optional<Rounding> take_integer_rounding();

  // Throws Unsupported, naming the instruction.
  [[noreturn]] void unsupported() const;

  // The last step of every selection. Throws Unsupported if a modifier was not understood, the
  // number of types or operands is wrong, no handler was found, or an operand other than a
  // predicate is negated.
  Selection finish(Selection, std::size_t types = 1) const;

 private:
  const ptx::Instruction& instruction_;
  std::vector<AluType> types_;
  std::vector<std::string_view> words_;  // the other modifiers, not yet understood
};

Selection make_selection(Handler, std::span<const OperandForm>, InstrClass, int flops,
                         std::uint64_t imm);

// The families. nullopt: the instruction does not belong to the family.
std::optional<Selection> select_integer(Modifiers&);  // add ... dp4a of integers
std::optional<Selection> select_bits(Modifiers&);     // popc ... prmt, logic, shifts
std::optional<Selection> select_carry(Modifiers&);    // add.cc and the like
std::optional<Selection> select_choice(Modifiers&);   // selp slct
std::optional<Selection> select_compare(Modifiers&);  // setp set testp
std::optional<Selection> select_float(Modifiers&);    // f32 and f64, correctly rounded
std::optional<Selection> select_special(Modifiers&);  // f32 and f64, approximate
std::optional<Selection> select_half(Modifiers&);     // f16 and bf16, packed or not
std::optional<Selection> select_convert(Modifiers&);  // cvt

}  // namespace assay::sim
