#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include "sim/execution/cluster_run.h"
#include "sim/execution/memory_path.h"
#include "sim/memory/lane_pattern.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/lane_ops.h"
#include "sim/operations/mbarrier.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {

using ptx::Operand;
using ptx::Space;

namespace {

using Hosts = std::array<std::byte*, kLanes>;

// The objects that the active lanes name, as offsets and host addresses. Those of other blocks of
// the cluster remain offsets in the window.
void locate(Warp& warp, std::uint32_t base, std::uint64_t offset, std::uint32_t e, AccessKind kind,
            Lanes64& address, Hosts& host) {
  auto& w = run_of(warp);
  const MemoryFlags f = MemoryFlags::decode(e);
  lane_addresses(w, base, offset, f.narrow_address, address);
  if (f.space == Space::generic) {
    for (std::uint64_t& a : address.v) a -= kSharedRange.begin;
  }
  locate_atomic(w, Space::shared, address.v, w.active, kind, 8, host.data());
  if (w.block->cluster == nullptr) return;
  for_lanes(w.active, [&](unsigned l) {
    std::uint64_t object = address.v[l];
    if (w.block->cluster->owner(*w.block, object) == w.block) address.v[l] = object;
  });
}

// The checker of the block that holds a located object, whose offset becomes one in its memory.
BlockChecker& holder_of(WarpRun& w, std::uint64_t& object) {
  return w.block->cluster == nullptr ? w.block->checker
                                     : w.block->cluster->owner(*w.block, object)->checker;
}

// The object's offset in the shared window.
std::uint64_t object_of(const MemoryFlags& f, std::uint64_t address) {
  return f.space == Space::generic ? address - kSharedRange.begin : address;
}

Mbarrier read(const std::byte* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return Mbarrier::decode(word);
}
void write(std::byte* p, const Mbarrier& m) {
  const std::uint64_t word = m.encode();
  std::memcpy(p, &word, sizeof word);
}

// Calls f(address) for each distinct object that active lanes name.
template <class F>
void for_each_object(std::uint32_t lanes, const Lanes64& address, F&& f) {
  while (lanes != 0) {
    const std::uint64_t object = address.v[std::countr_zero(lanes)];
    f(object);
    for (unsigned l = 0; l < kLanes; ++l) {
      if (address.v[l] == object) lanes &= ~(1u << l);
    }
  }
}

void tell_arrivals(WarpRun& w, const Lanes64& address) {
  for_each_object(w.active, address, [&](std::uint64_t object) {
    const bool own = object < kClusterStride;
    if (own) return w.block->checker.mbarrier_arrive(w.index, object);
    w.block->checker.cluster_ordered_otherwise();
  });
}

// Ends the phase if it is complete.
void finish(WarpRun& w, std::uint64_t address, Mbarrier& m) {
  if (!m.advance()) return;
  BlockChecker& checker = holder_of(w, address);
  checker.mbarrier_complete(address);
}

void arrive_one(WarpRun& w, unsigned lane, std::uint64_t address, Mbarrier& m,
                std::uint32_t count) {
  if (count > m.pending) {
    fail(w, FindingKind::trap, lane,
         "arrives at an mbarrier more often than its phase expects, or it is not initialised");
  }
  m.pending -= count;
  finish(w, address, m);
}

// a: address, b: count
void init(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const MemoryFlags f = MemoryFlags::decode(in.e);
  Lanes64 address;
  lane_addresses(w, in.a, in.imm, f.narrow_address, address);
  alignas(64) std::uint64_t word[kLanes] = {};
  for_lanes(w.active, [&](unsigned l) {
    Mbarrier m;
    const std::uint32_t arrivals = w.r32(in.b).v[l];
    if (arrivals == 0 || arrivals > Mbarrier::kMaxCount) {
      fail(w, FindingKind::trap, l,
           fmt::format("an mbarrier for {} arrivals: it takes 1 to {}", arrivals,
                       std::uint32_t{Mbarrier::kMaxCount}));
    }
    m.pending = m.expected = arrivals;
    word[l] = m.encode();
  });
  store_lanes<8>(w, f.space, address.v, w.active, AccessKind::store,
                 reinterpret_cast<const std::byte*>(word));
  for_lanes(w.active,
            [&](unsigned l) { w.block->checker.mbarrier_init(object_of(f, address.v[l])); });
}

void invalidate(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const MemoryFlags f = MemoryFlags::decode(in.e);
  Lanes64 address;
  lane_addresses(w, in.a, in.imm, f.narrow_address, address);
  alignas(64) const std::uint64_t word[kLanes] = {};
  store_lanes<8>(w, f.space, address.v, w.active, AccessKind::store,
                 reinterpret_cast<const std::byte*>(word));
}

// d: the state before, a: address, b: a count or bytes.
template <bool kDrop, bool kCounted, bool kBytes>
void arrive(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  Lanes64 address;
  Hosts host;
  locate(w, in.a, in.imm, in.e, AccessKind::atomic, address, host);
  tell_arrivals(w, address);
  for_lanes(w.active, [&](unsigned l) {
    Mbarrier m = read(host[l]);
    const std::uint64_t before = m.encode();
    std::uint32_t count = 1;
    if constexpr (kCounted) count = w.r32(in.b).v[l];
    if constexpr (kBytes) m.bytes += static_cast<std::int32_t>(w.r32(in.b).v[l]);
    if constexpr (kDrop) m.expected -= std::min(count, m.expected);
    arrive_one(w, l, address.v[l], m, count);
    write(host[l], m);
    w.r64(in.d).v[l] = before;
  });
}

// a: address, b: bytes
template <bool kComplete>
void change_bytes(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  Lanes64 address;
  Hosts host;
  locate(w, in.a, in.imm, in.e, AccessKind::atomic, address, host);
  for_lanes(w.active, [&](unsigned l) {
    Mbarrier m = read(host[l]);
    const auto bytes = static_cast<std::int32_t>(w.r32(in.b).v[l]);
    m.bytes += kComplete ? -bytes : bytes;
    if (kComplete) finish(w, address.v[l], m);
    write(host[l], m);
  });
}

// d: whether the phase of the state (or of the parity) in b is over, a: address
template <bool kParity>
void test_wait(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  Lanes64 address;
  Hosts host;
  locate(w, in.a, in.imm, in.e, AccessKind::atomic_load, address, host);
  if (w.block->bulk.loading()) {
    for_each_object(w.active, address,
                    [&](std::uint64_t object) { land_bulk_copies(*w.block, object); });
  }
  std::uint32_t over = 0;
  for_lanes(w.active, [&](unsigned l) {
    const Mbarrier m = read(host[l]);
    bool done = false;
    if constexpr (kParity) {
      done = (m.phase & 1u) != (w.r32(in.b).v[l] & 1u);
    } else {
      done = m.phase != Mbarrier::decode(w.r64(in.b).v[l]).phase;
    }
    if (done) over |= 1u << l;
  });
  for_each_object(over, address,
                  [&](std::uint64_t object) { w.block->checker.mbarrier_wait(w.index, object); });
  w.set_pred(in.d, over);
}

void pending_count(Warp& w, const Instr& in) {
  const Lanes64& state = w.r64(in.a);
  each32(w, in.d, [&](unsigned l) { return Mbarrier::decode(state.v[l]).pending; });
}

FlowSelection select_arrive(const ptx::Instruction& in, OperandForm address) {
  const bool drop = has(in, "arrive_drop"), bytes = has(in, "expect_tx");
  const bool counted = !bytes && in.operands.size() == 3;
  if (in.operands.size() < 2 || in.operands.size() > 3) throw_unsupported(in);
  FlowSelection s;
  if (drop) {
    s.run = bytes     ? arrive<true, false, true>
            : counted ? arrive<true, true, false>
                      : arrive<true, false, false>;
  } else {
    s.run = bytes     ? arrive<false, false, true>
            : counted ? arrive<false, true, false>
                      : arrive<false, false, false>;
  }
  s.operands = {OperandForm::dst64, address};
  if (in.operands.size() == 3) s.operands.push_back(OperandForm::src32);
  return s;
}

FlowSelection select_wait(const ptx::Instruction& in, OperandForm address) {
  FlowSelection s;
  const bool parity = has(in, "parity");
  if (in.operands.size() != 3 && !(has(in, "try_wait") && in.operands.size() == 4)) {
    throw_unsupported(in);
  }
  s.run = parity ? test_wait<true> : test_wait<false>;
  s.operands = {OperandForm::dst_pred, address, parity ? OperandForm::src32 : OperandForm::src64};
  if (in.operands.size() == 4) s.operands.push_back(OperandForm::ignored);  // how long to suspend
  s.flow = Flow::poll;
  return s;
}

}  // namespace

void land_bulk_copies(BlockRun& block, std::uint64_t object) {
  const std::uint64_t landed = block.bulk.land(block, object);
  if (landed == 0) return;
  std::byte* const host = block.shared.data() + object;
  Mbarrier m = read(host);
  m.bytes -= static_cast<std::int32_t>(landed);
  if (m.advance()) block.checker.mbarrier_complete(object);
  write(host, m);
}

void arrive_after_copies(Warp& warp, std::uint32_t base, std::uint64_t offset, std::uint32_t flags,
                         bool increment) {
  auto& w = run_of(warp);
  Lanes64 address;
  Hosts host;
  locate(w, base, offset, flags, AccessKind::atomic, address, host);
  tell_arrivals(w, address);
  for_lanes(w.active, [&](unsigned l) {
    Mbarrier m = read(host[l]);
    if (increment) ++m.pending;
    arrive_one(w, l, address.v[l], m, 1);
    write(host[l], m);
  });
}

std::optional<FlowSelection> select_mbarrier(const ptx::Instruction& in, const Names& names) {
  if (in.opcode != "mbarrier") return std::nullopt;
  FlowSelection s;
  if (has(in, "pending_count")) {
    s.run = pending_count;
    s.operands = {OperandForm::dst32, OperandForm::src64};
    s.cls = InstrClass::other;
    return s;
  }
  MemoryFlags flags;
  flags.space = has_prefix(in, "shared") ? Space::shared : Space::generic;
  const auto address_operand =
      std::find_if(in.operands.begin(), in.operands.end(),
                   [](const Operand& o) { return o.kind == Operand::Kind::address; });
  if (address_operand == in.operands.end()) throw_unsupported(in);
  flags.narrow_address = narrow_base(*address_operand, names);
  const OperandForm address = address_form(flags.narrow_address);
  if (has(in, "init")) {
    s.run = init;
    s.operands = {address, OperandForm::src32};
  } else if (has(in, "inval")) {
    s.run = invalidate;
    s.operands = {address};
  } else if (has(in, "test_wait") || has(in, "try_wait")) {
    s = select_wait(in, address);
  } else if (has(in, "arrive") || has(in, "arrive_drop")) {
    s = select_arrive(in, address);
  } else if (has(in, "expect_tx")) {
    s.run = change_bytes<false>;
    s.operands = {address, OperandForm::src32};
  } else if (has(in, "complete_tx")) {
    s.run = change_bytes<true>;
    s.operands = {address, OperandForm::src32};
  } else {
    throw_unsupported(in);
  }
  s.e = flags.encode();
  s.cls = InstrClass::memory;
  return s;
}

}  // namespace assay::sim
