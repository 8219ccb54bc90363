// cp.async.bulk: see sim/execution/bulk_copies.h. What needs clusters of blocks or tensor maps is
// refused.
#include <fmt/format.h>

#include "sim/execution/bulk_copies.h"
#include "sim/execution/cluster_run.h"
#include "sim/execution/memory_path.h"
#include "sim/memory/lane_pattern.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/mbarrier.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {

namespace {

BulkCopy copy_of(WarpRun& w, std::uint32_t lane, std::uint64_t from, std::uint64_t to,
                 std::uint32_t bytes) {
  if ((from | to | bytes) % kBulkPiece != 0) {
    fail(w, FindingKind::misaligned, lane,
         fmt::format("copies {} bytes from {:#x} to {:#x}, but addresses and size of a bulk copy "
                     "are multiples of {}",
                     bytes, from, to, kBulkPiece));
  }
  return {w.index, lane, w.pc, from, to, bytes};
}

void check_mbarrier(WarpRun& w, std::uint32_t lane, std::uint64_t object) {
  if (object % sizeof(std::uint64_t) != 0) {
    fail(w, FindingKind::misaligned, lane,
         fmt::format("names an mbarrier at offset {} of shared memory, not a multiple of 8",
                     object));
  }
  const std::uint64_t memory = w.block->checker.shared_bytes();
  if (memory < sizeof(std::uint64_t) || object > memory - sizeof(std::uint64_t)) {
    fail(
        w, FindingKind::out_of_bounds, lane,
        fmt::format("names an mbarrier at offset {} of {} bytes of shared memory", object, memory));
  }
}

// The offset in the executing block's shared memory of one in the window.
std::uint64_t own_offset(WarpRun& w, std::uint64_t offset) {
  if (w.block->cluster == nullptr || w.block->cluster->owner(*w.block, offset) == w.block)
    return offset;
  throw Unsupported(fmt::format("{} to the shared memory of another block is not supported ({})",
                                w.block->grid->program->info_of(w.pc).text,
                                w.block->grid->program->place(w.pc)));
}

// a: destination, b: source, c: bytes, e: the mbarrier
template <bool kNarrowTo, bool kNarrowObject>
void load(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  Lanes64 to, object;
  lane_addresses(w, in.a, in.imm, kNarrowTo, to);
  lane_addresses(w, in.e, 0, kNarrowObject, object);
  for_lanes(w.active, [&](std::uint32_t l) {
    const BulkCopy copy = copy_of(w, l, w.r64(in.b).v[l], own_offset(w, to.v[l]), w.r32(in.c).v[l]);
    const std::uint64_t mbarrier = own_offset(w, object.v[l]);
    check_mbarrier(w, l, mbarrier);
    w.block->bulk.load(*w.block, copy, mbarrier);
    if (w.block->bulk.full()) land_bulk_copies(w, mbarrier);
  });
}

// a: destination, b: source, c: bytes
template <bool kNarrowFrom>
void store(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  Lanes64 from, to;
  lane_addresses(w, in.b, 0, kNarrowFrom, from);
  lane_addresses(w, in.a, in.imm, false, to);
  for_lanes(w.active, [&](std::uint32_t l) {
    w.block->bulk.store(*w.block, copy_of(w, l, from.v[l], to.v[l], w.r32(in.c).v[l]));
  });
}

void commit(Warp& warp, const Instr&) {
  auto& w = run_of(warp);
  w.block->bulk.commit(w.index, w.active);
}

void wait(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  w.block->bulk.wait(*w.block, w.index, w.active, static_cast<std::uint32_t>(in.imm));
}

void prefetch(Warp&, const Instr&) {}

FlowSelection select_load(const ptx::Instruction& in, const Names& names) {
  const bool narrow_to = narrow_base(in.operands[0], names),
             narrow_object = narrow_base(in.operands[3], names);
  FlowSelection s;
  if (narrow_to) {
    s.run = narrow_object ? load<true, true> : load<true, false>;
  } else {
    s.run = narrow_object ? load<false, true> : load<false, false>;
  }
  s.operands = {address_form(narrow_to), OperandForm::address64, OperandForm::src32,
                address_form(narrow_object)};
  return s;
}

FlowSelection select_store(const ptx::Instruction& in, const Names& names) {
  const bool narrow = narrow_base(in.operands[1], names);
  FlowSelection s;
  s.run = narrow ? store<true> : store<false>;
  s.operands = {OperandForm::address64, address_form(narrow), OperandForm::src32};
  return s;
}

}  // namespace

std::optional<FlowSelection> select_bulk(const ptx::Instruction& in, const Names& names) {
  if (in.opcode != "cp" || !has(in, "bulk")) return std::nullopt;
  if (in.modifiers.front() != "async" || has(in, "tensor") || has(in, "multicast::cluster") ||
      has(in, "cp_mask"))
    throw_unsupported(in);
  const bool policy = has(in, "L2::cache_hint");
  const std::size_t count = in.operands.size() - (policy ? 1 : 0);
  const bool counted = has(in, "mbarrier::complete_tx::bytes");
  FlowSelection s;
  if (has(in, "commit_group")) {
    s.run = commit;
  } else if (has(in, "wait_group") && count == 1) {
    s.run = wait;
    s.operands = {OperandForm::immediate};
  } else if (has(in, "prefetch") && count == 2) {
    s.run = prefetch;
    s.operands = {OperandForm::address64, OperandForm::src32};
  } else if (has(in, "global") && counted && count == 4) {
    s = select_load(in, names);
  } else if (has(in, "global") && has(in, "shared::cta") && has(in, "bulk_group") && count == 3) {
    s = select_store(in, names);
  } else {
    throw_unsupported(in);
  }
  if (policy) s.operands.push_back(OperandForm::ignored);
  s.cls = InstrClass::memory;
  return s;
}

}  // namespace assay::sim
