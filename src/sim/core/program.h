// A module decoded for execution: operands are offsets into a warp's register file, handlers do the work.
//
// Register file. A frame of Lanes32 and Lanes64 slots; values of 8 and 16 bits live in Lanes32 with the
// upper bits zero (s8 and s16 too: handlers sign-extend when they read). Immediates and special
// registers that do not change are slots as well, filled in when a warp starts, so that every source
// operand is a slot. Predicates are 32-bit masks, one bit a lane, in a file of their own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/device.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

struct Warp;
struct Instr;

// Executes one instruction for the lanes in warp.active (never 0). Lanes outside keep every register.
using Handler = void (*)(Warp&, const Instr&);

enum class InstrClass : std::uint8_t {
  integer, fp32, fp16, fp64, conversion, special, memory, control, warp, tensor, other,
};

// Hot: what the interpreter reads for each instruction.
struct Instr {
  Handler run = nullptr;
  std::uint32_t d = 0, a = 0, b = 0, c = 0;  // byte offsets in the frame, or predicate indices
  std::uint64_t imm = 0;                     // by instruction
  std::uint32_t e = 0;                       // a further operand, or
  std::uint32_t aux = 0;                     // by instruction: branch target, index into Program::extra
  std::int32_t guard = -1;                   // predicate index, -1: none
  bool guard_negated = false;
};

// Cold: the same index as the instruction.
struct InstrInfo {
  InstrClass cls = InstrClass::other;
  std::uint8_t flops = 0;      // per lane, fp32 only: 1, 2 (fma)
  std::uint32_t tensor_flops = 0;  // per warp
  ptx::Location where;
  std::string text;            // "ld.global.v4.f32", for messages
};

// Constants and special registers to put into slots when a warp starts.
struct SlotInit {
  enum class Kind : std::uint8_t { value32, value64, tid_x, tid_y, tid_z, lane_id, warp_id, other } kind{};
  std::uint32_t offset = 0;
  std::uint64_t value = 0;     // the value; of `other` the id of a special register, see special.h
};

struct Code {                  // of an entry or a .func
  std::string name;
  std::vector<Instr> code;
  std::vector<InstrInfo> info;
  std::vector<std::uint32_t> block_begin;  // basic blocks, ascending; blocks end where the next begins
  std::vector<std::uint32_t> extra;        // operand lists
  std::vector<SlotInit> slots;
  std::uint32_t frame_bytes = 0, predicates = 0;
  std::uint32_t local_bytes = 0;           // .local variables and depot, a thread
};

}  // namespace assay::sim
