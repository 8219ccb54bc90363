// The instruction families that need more than the instruction: register types and symbol places.
// They also say what the interpreter must do around the handler.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "sim/operations/instruction_set.h"
#include "sim/operations/names.h"

namespace assay::sim {

struct FlowSelection : Selection {
  Flow flow = Flow::next;         // poll or barrier
  std::uint32_t e = 0;            // Instr::e, if no operand goes there
  bool any_place = false;         // rendezvous: bar.warp.sync
  bool ordered = false;           // its effect may depend on the order of blocks
  bool waits_for_blocks = false;  // threads may use it to wait for other blocks
  bool uses_cluster = false;      // it has a meaning only in a cluster, if one of a single block
  bool own_block = false;         // must be alone in its basic block: it may be executed in parts
};

std::optional<FlowSelection> select_move(const ptx::Instruction&, const Names&);  // move_ops.cpp
std::optional<FlowSelection> select_memory(const ptx::Instruction&,
                                           const Names&);                          // load_store.cpp
std::optional<FlowSelection> select_param(const ptx::Instruction&, const Names&);  // param_ops.cpp
std::optional<FlowSelection> select_atomic(const ptx::Instruction&,
                                           const Names&);              // atomic_ops.cpp
std::optional<FlowSelection> select_barrier(const ptx::Instruction&);  // barrier_ops.cpp
std::optional<FlowSelection> select_async(const ptx::Instruction&, const Names&);  // async_copy.cpp
std::optional<FlowSelection> select_bulk(const ptx::Instruction&, const Names&);   // bulk_copy.cpp
std::optional<FlowSelection> select_tensor_copy(const ptx::Instruction&,
                                                const Names&);  // tensor_copy.cpp
std::optional<FlowSelection> select_mbarrier(const ptx::Instruction&,
                                             const Names&);              // mbarrier_ops.cpp
std::optional<FlowSelection> select_warpgroup(const ptx::Instruction&);  // tensor_ops_wgmma.cpp
std::optional<FlowSelection> select_texture(const ptx::Instruction&);    // texture_ops.cpp
std::optional<FlowSelection> select_control(const ptx::Instruction&);    // control_ops.cpp

// Handlers that the decoder inserts itself.
Handler clock_handler(const std::string& special);  // d: 32 or 64 bits
bool is_wide_clock(const std::string& special);
void narrow64(Warp&, const Instr&);        // d32 = a64 & imm
void widen_unsigned(Warp&, const Instr&);  // d64 = a32
void widen_signed(Warp&, const Instr&);
void add_imm32(Warp&, const Instr&);  // d = a + imm
void add_imm64(Warp&, const Instr&);
void complement(Warp&, const Instr&);       // predicate d = !a
void set_if_not_zero(Warp&, const Instr&);  // predicate d = a32 != 0
void call_vprintf(Warp&, const Instr&);  // builtins.cpp; rows of format, arguments, result in extra
void call_assertfail(Warp&, const Instr&);  // rows of message, file, line, function in extra

// Whether the register of an address operand has 32 bits, as is allowed for shared memory.
bool narrow_base(const ptx::Operand&, const Names&);

[[noreturn]] void throw_unsupported(const ptx::Instruction&, const std::string& why = {});

// Takes an instruction's modifiers one after the other, in the order of the ISA.
class ModifierSequence {
 public:
  explicit ModifierSequence(const ptx::Instruction& in) : in_(in) {}
  // Whether this is the next one, which is then taken.
  bool take(std::string_view name) {
    const bool there = next_ < in_.modifiers.size() && in_.modifiers[next_] == name;
    next_ += there ? 1 : 0;
    return there;
  }
  // These throw unless the next one is this, or unless all are taken.
  void need(std::string_view name) {
    if (!take(name)) throw_unsupported(in_);
  }
  void end() const {
    if (next_ != in_.modifiers.size()) throw_unsupported(in_);
  }

 private:
  const ptx::Instruction& in_;
  std::size_t next_ = 0;
};

}  // namespace assay::sim
