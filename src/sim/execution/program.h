// A module decoded for execution: operands are offsets into a warp's register file, and handlers do
// the work.
//
// Register file. A frame of Lanes32 and Lanes64 slots. Values of 8 and 16 bits are in Lanes32 slots
// with the upper bits zero (s8 and s16 too: handlers sign-extend when they read). Immediates and
// special registers that do not change are slots as well, filled when a warp starts, so that every
// source operand is a slot. Predicates are 32-bit masks, one bit per lane, in a separate file.
#pragma once

#include <algorithm>
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

// Executes one instruction for the lanes in warp.active (never 0). Other lanes keep all registers.
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

// Hot: read by the interpreter for each instruction.
struct Instr {
  Handler run = nullptr;
  std::uint32_t d = 0, a = 0, b = 0, c = 0;  // byte offsets in the frame, or predicate indices
  std::uint64_t imm = 0;                     // depends on the instruction
  std::uint32_t e = 0;                       // one more operand, or
  std::uint32_t aux = 0;    // depends on the instruction: branch target, index into Code::extra
  std::int32_t guard = -1;  // predicate index, -1: none
  bool guard_negated = false;
};

// An instruction's least use of the units, once per warp; use that depends on its addresses is
// counted as it happens. See decode/price.h.
struct InstrPrice {
  // By Unit, from issue to constant.
  std::array<std::uint8_t, static_cast<std::size_t>(Unit::constant) + 1> of{};
  Unit tensor = Unit::tensor_f16;  // for InstrInfo::tensor_flops
};

// Cold: has the instruction's index.
struct InstrInfo {
  InstrClass cls = InstrClass::other;
  std::uint8_t flops = 0;          // per lane, fp32 only: 1, 2 (fma)
  bool counted = true;             // false: added by the decoder, not an instruction of the program
  std::uint32_t tensor_flops = 0;  // per warp
  InstrPrice price;
  ptx::Location where;
  std::string text;  // "ld.global.v4.f32", for messages
};

// Constants and special registers to write into slots when a warp starts.
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
    local_address,  // value + the start of the frame's local memory; 64 bits
    predicate,      // offset is a predicate index, value its mask
    undefined32,
    undefined64,
    undefined_predicate,  // may be read before it is written: 0
  } kind{};
  std::uint32_t offset = 0;
  std::uint64_t value = 0;  // the value; for `other`, the id of a special register, see special.h
};

// How undefined bits travel from an instruction's sources to its results: see definedness.h.
struct Spread {
  enum class Kind : std::uint8_t {
    none,     // no result is undefined
    copy,     // the handler moves bits, so it can move the masks of undefined bits too
    rows,     // likewise, between registers and .param rows, which are not operands
    bits,     // result bits that change when undefined source bits do
    values,   // likewise, but a changed result is undefined as a whole
    upwards,  // from the lowest undefined source bit upwards: sums and products
    whole,    // the whole result, if any source bit is
    compare,  // setp
    load,
    store,
    atomic,  // computes something from all operands
    exchange,
  };
  static constexpr std::uint8_t kEquality = 1, kAnd = 2, kOr = 4, kOther = 8;  // for compare
  Kind kind = Kind::none;
  std::uint8_t width = 64;  // source bits that count
  std::uint8_t flags = 0;
};

enum class SlotClass : std::uint8_t { predicate, b32, b64, b128 };

// An operand as seen by the definedness checks.
struct OperandUse {
  std::uint32_t slot = 0;  // offset in the frame, or a predicate index
  SlotClass cls = SlotClass::b32;
  bool written = false, address = false;
};

// What happens at the end of a basic block.
enum class Flow : std::uint8_t {
  next,            // continues with the next block
  poll,            // likewise, after an instruction that threads use to wait for others: may yield
  branch,          // aux: target block
  branch_indexed,  // a: slot of the index, aux: number of targets and targets in Code::extra
  call,            // aux: see CallSite in calls.h
  call_indirect,
  ret,
  exit,
  barrier,  // see barriers.h
};

inline constexpr std::uint32_t kFullWarp = 0xffffffffu;  // Block::mask_offset: a constant full mask

// A basic block: instructions [begin, end) run by their handlers. If flow is one of branch, ...,
// barrier, the terminator is code[end].
struct Block {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t instructions = 0;         // counted ones, terminator included
  std::uint32_t mask_offset = kFullWarp;  // for a rendezvous: slot of the member mask
  Flow flow = Flow::next;
  bool rendezvous = false;  // the first instruction waits for the lanes of its mask
  bool any_place = false;   // accepts lanes at any such instruction: bar.warp.sync
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
  std::vector<UnitWork> prices;      // sum over the instructions of each block
  std::vector<std::uint32_t> extra;  // operand lists
  std::vector<Spread> spread;        // by instruction, as are the operands, which start at
                                     // first_use[i]
  std::vector<std::uint32_t> first_use;
  std::vector<OperandUse> uses;
  std::vector<SlotInit> slots;
  std::vector<ParamRows> results, parameters;  // for a .func
  std::uint32_t frame_bytes = 0, predicates = 0;
  std::uint32_t local_bytes = 0;  // .local variables and depot, per thread
  std::uint32_t local_align = 16;
  std::uint32_t first_pc = 0;     // pc of code[0]; pcs are unique within a program
  std::uint32_t first_block = 0;  // likewise for blocks

  std::span<const OperandUse> uses_of(std::size_t instruction) const {
    return {uses.data() + first_use[instruction], uses.data() + first_use[instruction + 1]};
  }
};

// A kernel with every function that it may call.
struct Program {
  const ptx::Module* module = nullptr;
  std::vector<std::unique_ptr<Code>> codes;         // the entry first
  std::map<std::uint64_t, const Code*> by_address;  // targets of indirect calls
  std::vector<std::string> refusals;  // why functions reachable only by pointer are unsupported
  KernelInfo info;
  std::uint32_t dynamic_shared_offset = 0;        // where extern .shared arrays begin
  std::uint32_t instructions = 0, blocks = 0;     // of all codes together
  std::uint32_t required_threads[3] = {0, 0, 0};  // .reqntid; 0: none
  bool ordered = false;  // the result may depend on the order of blocks: they run one after another
  bool polls = false;    // threads may wait for those of other blocks
  bool uses_cluster = false;          // has instructions for the cluster
  bool uses_reserved_shared = false;  // asks where the system's shared memory is

  const Code& entry() const { return *codes.front(); }
  // Of a block, static and dynamic.
  std::uint64_t shared_bytes(std::uint64_t dynamic) const {
    return std::max<std::uint64_t>(info.static_shared_bytes, dynamic_shared_offset + dynamic);
  }
  const Code& code_of(std::uint32_t pc) const;
  const InstrInfo& info_of(std::uint32_t pc) const;
  std::string place(std::uint32_t pc) const;               // "topk.cu:41"
  std::vector<SourceLine> places(std::uint32_t pc) const;  // see ptx::Module
};

}  // namespace assay::sim
