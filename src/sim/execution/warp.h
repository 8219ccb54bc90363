// An executing warp, as instruction handlers see it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "sim/execution/program.h"
#include "sim/math/lanes.h"
#include "sim/memory/access.h"

namespace assay::sim {

struct BlockRun;  // the executing block: shared memory, barriers, checker

struct Warp {
  std::byte* regs = nullptr;             // the current frame
  std::uint32_t* preds = nullptr;        // the current frame's predicate masks
  const std::uint32_t* extra = nullptr;  // Code::extra of the current function
  std::uint32_t active = 0;  // lanes that execute the current instruction: fragment and guard
  Lanes32 lane_mask{};       // active, expanded: ~0u or 0 per lane
  Lanes32 carry{};           // CC.CF of add.cc and the like: 0 or 1
  std::uint32_t index = 0;   // within the block
  std::uint32_t live = 0;    // lanes that exist and have not exited
  std::uint32_t pc = 0;      // of the executing instruction, unique within the program
  BlockRun* block = nullptr;

  Lanes32& r32(std::uint32_t offset) { return *reinterpret_cast<Lanes32*>(regs + offset); }
  Lanes64& r64(std::uint32_t offset) { return *reinterpret_cast<Lanes64*>(regs + offset); }
  bool full() const { return active == 0xffffffffu; }

  // Sets the predicate in the active lanes only.
  void set_pred(std::uint32_t index, std::uint32_t mask) {
    preds[index] = (preds[index] & ~active) | (mask & active);
  }
};

// Ends the launch with a finding at the warp's current instruction (thrown through the
// interpreter).
[[noreturn]] void fail(Warp&, FindingKind, std::uint32_t lane, const std::string& text);

// The executing shuffle gives these lanes values of lanes that take no part. On a GPU they may be
// any, so they are undefined.
void note_absent_sources(Warp&, std::uint32_t lanes);

// Checked and counted access of the lanes in `mask` to memory, `bytes` each (1 to 32), lane-major
// without gaps in `data`. Space generic resolves each lane's address; shared addresses are window
// offsets. A faulty access ends the launch. For tensor fragments and matrices.
void read_lanes(Warp&, ptx::Space, const std::uint64_t* address, std::uint32_t mask,
                std::uint32_t bytes, void* data);
void write_lanes(Warp&, ptx::Space, const std::uint64_t* address, std::uint32_t mask,
                 std::uint32_t bytes, const void* data);

}  // namespace assay::sim
