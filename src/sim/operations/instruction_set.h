// Maps a parsed instruction to its handler, by family. Each family is one file; the decoder asks
// them in turn and assigns operands to slots as the answer says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/execution/program.h"

namespace assay::sim {

// How an operand reaches the handler. If a register is wider or narrower than the form, the decoder
// adds the conversion. A negated source predicate (!p) arrives complemented, and an integer literal
// in place of a predicate as a constant mask. Only for families of select_alu with one destination
// may sources and destinations share a slot: all others may write before they have read.
enum class OperandForm : std::uint8_t {
  dst32,
  dst64,
  dst_pred,  // written; _ (sink) gives a scratch slot
  src32,
  src64,
  src_pred,  // read; an immediate or special register becomes a slot. A 16-bit literal,
             // or a real literal of f32 type, is converted to the slot's bits
  dst32_list,
  src32_list,
  dst64_list,
  src64_list,           // {a, b, ...}: offsets in Code::extra
  accumulators32_list,  // likewise, read and written: two offsets each
  dst128,
  src128,     // two adjacent Lanes64, the low halves first
  ignored,    // not read: a cache policy
  immediate,  // must be a literal: goes to Instr::imm
  address32,
  address64,    // [reg + offset]: the register's slot; the offset goes to Instr::imm
  coordinates,  // [object, {x, y, ...}]: the object's 64 bits, then each coordinate's 32
};

// Of an address whose register may have 32 bits, as is allowed for shared memory.
constexpr OperandForm address_form(bool narrow) {
  return narrow ? OperandForm::address32 : OperandForm::address64;
}

struct Selection {
  Handler run = nullptr;
  InstrClass cls = InstrClass::other;
  std::uint8_t flops = 0;
  std::uint32_t tensor_flops = 0;
  std::uint64_t imm = 0;  // Instr::imm, unless an operand of form immediate sets it
  // One per operand of the instruction, in order. The slots go to Instr::d, a, b, c, e,
  // destinations first: the first destination to d, the first three sources to a, b, c, a fourth
  // source or second destination to e. With more operands, or with a list, everything goes to
  // Code::extra instead, in operand order, lists element by element, and Instr::aux is the index of
  // the first.
  std::vector<OperandForm> operands;
  bool uses_extra = false;
  bool rendezvous = false;        // .sync: all lanes of its mask must arrive; see warp_ops.cpp
  std::uint8_t mask_operand = 0;  // for a rendezvous: which operand is the member mask; 255: full
                                  // warp
  std::optional<Spread> spread;   // if decode/spread.h cannot know it
};

// Each returns nullopt if the opcode is not in its family, and throws Unsupported, naming the whole
// instruction, if it is but this variant is not implemented.
std::optional<Selection> select_alu(const ptx::Instruction&);      // alu_*.cpp
std::optional<Selection> select_warp_op(const ptx::Instruction&);  // warp_ops.cpp
std::optional<Selection> select_tensor(const ptx::Instruction&);   // tensor_ops.cpp

}  // namespace assay::sim
