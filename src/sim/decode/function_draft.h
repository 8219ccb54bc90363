// A function between PTX and Code: instructions have handlers, operands are values without slots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/execution/program.h"

namespace assay::sim {

// Corresponds to SlotClass.
enum class ValueClass : std::uint8_t { predicate, b32, b64, b128 };

struct Value {
  ValueClass cls = ValueClass::b32;
  bool fixed =
      false;  // keeps one slot for the whole function: constants, special registers, scratch
  bool temporary = false;  // made by the decoder: written before it is read, in straight-line code
  bool has_init = false;
  SlotInit init;
};

// Which field of Instr takes an operand's slot.
enum class Field : std::uint8_t { d, a, b, c, e, extra, none };

struct DraftOperand {
  std::uint32_t value = 0;
  bool written = false;
  Field field = Field::none;
  bool address = false;  // an address of memory that the instruction accesses
};

struct DraftInstr {
  Handler run = nullptr;
  InstrInfo info;
  Spread spread;
  Flow flow = Flow::next;
  std::uint64_t imm = 0;
  std::uint32_t e = 0;               // unless an operand uses this field
  std::vector<std::uint32_t> extra;  // before the operands' slots
  std::int64_t guard = -1;           // a value
  bool guard_negated = false;
  bool begins_block = false, ends_block = false;
  bool may_overlap = false;  // the handler may write to slots that it reads
  bool rendezvous = false, any_place = false;
  std::int64_t mask_value = -1;                   // for a rendezvous; -1: the full warp
  std::uint32_t first_operand = 0, operands = 0;  // in FunctionDraft::operands
  std::vector<std::size_t> targets;               // for branches: instructions of the PTX body
};

struct FunctionDraft {
  std::vector<Value> values;
  std::vector<DraftInstr> instrs;
  std::vector<DraftOperand> operands;
  std::vector<std::uint32_t> first_of;  // draft index of each PTX instruction, then of the end
  std::uint32_t rows_end = 0;           // frame bytes taken by .param rows
};

// A basic block of a draft.
struct DraftBlock {
  std::uint32_t begin = 0, end = 0;  // instructions, terminator included
  std::vector<std::uint32_t> successors;
};

std::vector<DraftBlock> find_blocks(const FunctionDraft&);

// Slots of all values: byte offsets in the frame, or predicate indices. Values that are never live
// at the same time in one thread share slots.
struct FrameLayout {
  std::vector<std::uint32_t> offset;  // by value
  std::uint32_t frame_bytes = 0, predicates = 0, register_words = 0;
  std::vector<std::uint32_t> undefined;  // values that may be read before they are written
};

FrameLayout lay_out_frame(const FunctionDraft&, const std::vector<DraftBlock>&);

// The last step: assigns slots to values and blocks to targets. Fills in all of Code except its
// name and parameters.
void emit(const FunctionDraft&, const std::vector<DraftBlock>&, const FrameLayout&, Code&);

}  // namespace assay::sim
