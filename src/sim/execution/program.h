// A module decoded for execution: operands are offsets into a warp's register file, handlers do the
// work.
//
// Register file. A frame of Lanes32 and Lanes64 slots; values of 8 and 16 bits live in Lanes32 with
// the upper bits zero (s8 and s16 too: handlers sign-extend when they read). Immediates and special
// registers that do not change are slots as well, filled in when a warp starts, so that every
// source operand is a slot. Predicates are 32-bit masks, one bit a lane, in a file of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/counters.h"
#include "sim/device.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

struct Warp;
struct Instr;

// Executes one instruction for the lanes in warp.active (never 0). Lanes outside keep every
// register.
using Handler = void (*)(Warp&, const Instr&);

enum class InstrClass : std::uint8_t {
  integer,
  fp32,
  fp16,
  fp64,
  conversion,
  special,
  memory,
  control,
  warp,
  tensor,
  other,
};

// Hot: what the interpreter reads for each instruction.
struct Instr {
  Handler run = nullptr;
  std::uint32_t d = 0, a = 0, b = 0, c = 0;  // byte offsets in the frame, or predicate indices
  std::uint64_t imm = 0;                     // by instruction
  std::uint32_t e = 0;                       // a further operand, or
  std::uint32_t aux = 0;    // by instruction: branch target, index into Code::extra
  std::int32_t guard = -1;  // predicate index, -1: none
  bool guard_negated = false;
};

// What an instruction takes of the units at least, once for a warp; what depends on its addresses
// is counted as it happens. See decode/price.h.
struct InstrPrice {
  // By Unit, issue to constant.
  std::array<std::uint8_t, static_cast<std::size_t>(Unit::constant) + 1> of{};
  Unit tensor = Unit::tensor_f16;  // of InstrInfo::tensor_flops
};

// Cold: the same index as the instruction.
struct InstrInfo {
  InstrClass cls = InstrClass::other;
  std::uint8_t flops = 0;          // per lane, fp32 only: 1, 2 (fma)
  bool counted = true;             // false: added by the decoder, no instruction of the program
  std::uint32_t tensor_flops = 0;  // per warp
  InstrPrice price;
  ptx::Location where;
  std::string text;  // "ld.global.v4.f32", for messages
};

// Constants and special registers to put into slots when a warp starts.
struct SlotInit {
  enum class Kind : std::uint8_t {
    value32,
    value64,
    tid_x,
    tid_y,
    tid_z,
    lane_id,
    warp_id,
    other,
    local_address,  // value + where the frame's local memory begins; 64 bits
    predicate,      // offset is a predicate index, value its mask
    undefined32,
    undefined64,
    undefined_predicate,  // may be read before it is written: 0
  } kind{};
  std::uint32_t offset = 0;
  std::uint64_t value = 0;  // the value; of `other` the id of a special register, see special.h
};

// How undefined bits go from what an instruction reads to what it writes: see definedness.h.
struct Spread {
  enum class Kind : std::uint8_t {
    none,     // nothing that it writes is undefined
    copy,     // the handler moves bits, those that say what is undefined too
    rows,     // likewise, between registers and .param rows, which are no operands
    bits,     // a result's bits that change when undefined bits of the sources do
    values,   // likewise, but a result that changes is undefined as a whole
    upwards,  // from the lowest undefined bit of the sources on: sums and products
    whole,    // the whole result, if any bit of a source is
    compare,  // setp
    load,
    store,
    atomic,  // of all operands something is computed
    exchange,
  };
  static constexpr std::uint8_t kEquality = 1, kAnd = 2, kOr = 4, kOther = 8;  // of compare
  Kind kind = Kind::none;
  std::uint8_t width = 64;  // bits of a source that count
  std::uint8_t flags = 0;
};

enum class SlotClass : std::uint8_t { predicate, b32, b64, b128 };

// An operand as definedness sees it.
struct OperandUse {
  std::uint32_t slot = 0;  // offset in the frame, or a predicate index
  SlotClass cls = SlotClass::b32;
  bool written = false, address = false;
};

// What happens at the end of a basic block.
enum class Flow : std::uint8_t {
  next,            // goes on with the next block
  poll,            // likewise, after an instruction with which threads wait for others: may yield
  branch,          // aux: target block
  branch_indexed,  // a: slot of the index, aux: number of targets and targets in Code::extra
  call,            // aux: see CallSite in calls.h
  call_indirect,
  ret,
  exit,
  barrier,  // see barriers.h
};

inline constexpr std::uint32_t kFullWarp = 0xffffffffu;  // Block::mask_offset: a constant full mask

// A basic block: instructions [begin, end) run by their handlers; the terminator, where flow is one
// of branch, ..., barrier, is code[end].
struct Block {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t instructions = 0;         // counted ones, terminator included
  std::uint32_t mask_offset = kFullWarp;  // slot of the member mask, of a rendezvous
  Flow flow = Flow::next;
  bool rendezvous = false;  // the first instruction waits for the lanes of its mask
  bool any_place = false;   // for lanes at any such instruction: bar.warp.sync
};

// Rows of a .param variable in a frame: 32-bit words, each a Lanes32.
struct ParamRows {
  std::uint32_t offset = 0, words = 0;
};

struct Code {  // of an entry or a .func
  std::string name;
  std::vector<Instr> code;
  std::vector<InstrInfo> info;
  std::vector<Block> blocks;         // ascending; the last never falls through
  std::vector<UnitWork> prices;      // of each block's instructions together
  std::vector<std::uint32_t> extra;  // operand lists
  std::vector<Spread> spread;        // by instruction, as are the operands: from first_use[i] on
  std::vector<std::uint32_t> first_use;
  std::vector<OperandUse> uses;
  std::vector<SlotInit> slots;
  std::vector<ParamRows> results, parameters;  // of a .func
  std::uint32_t frame_bytes = 0, predicates = 0;
  std::uint32_t local_bytes = 0;  // .local variables and depot, a thread
  std::uint32_t first_pc = 0;     // pc of code[0]; pcs are unique within a program
  std::uint32_t first_block = 0;  // likewise of blocks

  std::span<const OperandUse> uses_of(std::size_t instruction) const {
    return {uses.data() + first_use[instruction], uses.data() + first_use[instruction + 1]};
  }
};

// A kernel with every function that it may call.
struct Program {
  const ptx::Module* module = nullptr;
  std::vector<std::unique_ptr<Code>> codes;         // the entry first
  std::map<std::uint64_t, const Code*> by_address;  // targets of indirect calls
  std::vector<std::string> refusals;  // why functions that only pointers reach are not supported
  KernelInfo info;
  std::uint32_t dynamic_shared_offset = 0;        // where extern .shared arrays begin
  std::uint32_t instructions = 0, blocks = 0;     // of all codes
  std::uint32_t required_threads[3] = {0, 0, 0};  // .reqntid; 0: none
  bool ordered = false;  // its result may depend on the order of blocks: they run one after another
  bool polls = false;    // threads may wait for those of other blocks

  const Code& entry() const { return *codes.front(); }
  const Code& code_of(std::uint32_t pc) const;
  const InstrInfo& info_of(std::uint32_t pc) const;
  std::string place(std::uint32_t pc) const;  // "topk.cu:41"
};

}  // namespace assay::sim
