#include "sim/execution/definedness.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "sim/execution/fragments.h"
#include "sim/memory/lane_pattern.h"

namespace assay::sim {
namespace {

using Kind = Spread::Kind;
using Uses = std::span<const OperandUse>;

constexpr std::uint32_t kFirstScan = 64, kLastScan = 4096;

constexpr std::size_t bytes_of(SlotClass c) {
  constexpr std::size_t kBytes[] = {sizeof(std::uint32_t), sizeof(Lanes32), sizeof(Lanes64),
                                    2 * sizeof(Lanes64)};
  return kBytes[static_cast<std::size_t>(c)];
}

constexpr std::uint64_t low_mask(unsigned bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

FrameShadow& shadow_of(WarpRun& w) { return *w.frame->shadow; }

std::byte* register_of(WarpRun& w, const OperandUse& u) {
  return u.cls == SlotClass::predicate ? reinterpret_cast<std::byte*>(w.preds + u.slot)
                                       : w.regs + u.slot;
}
std::byte* shadow_of(WarpRun& w, const OperandUse& u) {
  FrameShadow& s = shadow_of(w);
  return u.cls == SlotClass::predicate ? reinterpret_cast<std::byte*>(s.preds.data() + u.slot)
                                       : s.bits.data() + u.slot;
}

// Lanes in which any bit below `width` of the slot is set.
std::uint32_t lanes_set(const std::byte* slot, SlotClass c, unsigned width = 64) {
  std::uint32_t lanes = 0;
  if (c == SlotClass::predicate) {
    std::memcpy(&lanes, slot, sizeof lanes);
    return lanes;
  }
  const std::size_t n = bytes_of(c) / sizeof(std::uint64_t);
  const auto* const words = reinterpret_cast<const std::uint64_t*>(slot);
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < n; ++i) any |= words[i];
  if (any == 0) return 0;
  if (c == SlotClass::b32) {
    const auto mask = static_cast<std::uint32_t>(low_mask(width));
    const Lanes32& v = *reinterpret_cast<const Lanes32*>(slot);
    for (unsigned l = 0; l < kLanes; ++l) lanes |= ((v.v[l] & mask) != 0 ? 1u : 0u) << l;
    return lanes;
  }
  const std::uint64_t mask = low_mask(width);
  for (std::size_t half = 0; half < n / kLanes; ++half) {
    for (unsigned l = 0; l < kLanes; ++l) {
      lanes |= ((words[half * kLanes + l] & mask) != 0 ? 1u : 0u) << l;
    }
  }
  return lanes;
}

std::uint32_t undefined_lanes(WarpRun& w, const OperandUse& u, unsigned width = 64) {
  return lanes_set(shadow_of(w, u), u.cls, width) & w.active;
}

// Copies `from` into `to` in the active lanes.
void blend(const WarpRun& w, std::byte* to, const std::byte* from, SlotClass c) {
  if (c == SlotClass::predicate) {
    std::uint32_t old, now;
    std::memcpy(&old, to, sizeof old);
    std::memcpy(&now, from, sizeof now);
    now = (old & ~w.active) | (now & w.active);
    std::memcpy(to, &now, sizeof now);
    return;
  }
  if (w.full()) {
    std::memcpy(to, from, bytes_of(c));
    return;
  }
  const std::size_t size = c == SlotClass::b32 ? sizeof(std::uint32_t) : sizeof(std::uint64_t);
  const std::size_t halves = c == SlotClass::b128 ? 2 : 1;
  for (std::size_t half = 0; half < halves; ++half) {
    for (std::uint32_t rest = w.active; rest != 0; rest &= rest - 1) {
      const std::size_t at =
          half * sizeof(Lanes64) + static_cast<std::size_t>(std::countr_zero(rest)) * size;
      std::memcpy(to + at, from + at, size);
    }
  }
}

// In the active lanes, sets all bits of the slot's shadow for `lanes` and clears them for the
// others.
void set_whole(WarpRun& w, const OperandUse& u, std::uint32_t lanes) {
  std::byte* const shadow = shadow_of(w, u);
  if (lanes == 0 && lanes_set(shadow, u.cls) == 0) return;
  alignas(64) std::byte all[2 * sizeof(Lanes64)];
  if (u.cls == SlotClass::predicate) {
    std::memcpy(all, &lanes, sizeof lanes);
  } else if (u.cls == SlotClass::b32) {
    auto& v = *reinterpret_cast<Lanes32*>(all);
    for (unsigned l = 0; l < kLanes; ++l) v.v[l] = 0u - ((lanes >> l) & 1u);
  } else {
    auto* const v = reinterpret_cast<std::uint64_t*>(all);
    for (unsigned l = 0; l < kLanes; ++l) {
      v[l] = v[kLanes + l] = std::uint64_t{0} - ((lanes >> l) & 1u);
    }
  }
  blend(w, shadow, all, u.cls);
}

void clear_written(WarpRun& w, Uses uses) {
  for (const OperandUse& u : uses) {
    if (u.written) set_whole(w, u, 0);
  }
}

std::uint32_t undefined_sources(WarpRun& w, Uses uses, unsigned width = 64) {
  std::uint32_t lanes = 0;
  for (const OperandUse& u : uses) {
    if (!u.written) lanes |= undefined_lanes(w, u, width);
  }
  return lanes;
}

// Visits the slots of operands in turn, to copy them out of or into the registers.
template <class F>
void each_slot(Uses uses, F&& f) {
  std::size_t at = 0;
  for (const OperandUse& u : uses) {
    f(u, at);
    at += bytes_of(u.cls);
  }
}
std::size_t size_of(Uses uses) {
  std::size_t bytes = 0;
  for (const OperandUse& u : uses) bytes += bytes_of(u.cls);
  return bytes;
}
void save(WarpRun& w, Uses uses, std::vector<std::byte>& to) {
  to.resize(size_of(uses));
  each_slot(uses, [&](const OperandUse& u, std::size_t at) {
    std::memcpy(to.data() + at, register_of(w, u), bytes_of(u.cls));
  });
}
void restore(WarpRun& w, Uses uses, const std::vector<std::byte>& from) {
  each_slot(uses, [&](const OperandUse& u, std::size_t at) {
    std::memcpy(register_of(w, u), from.data() + at, bytes_of(u.cls));
  });
}
void restore_written(WarpRun& w, Uses uses, const std::vector<std::byte>& from) {
  each_slot(uses, [&](const OperandUse& u, std::size_t at) {
    if (u.written) std::memcpy(register_of(w, u), from.data() + at, bytes_of(u.cls));
  });
}

// If any bit of a lane is set, sets all of them.
void widen_changes(std::byte* slot, SlotClass c) {
  if (c == SlotClass::predicate) return;
  if (c == SlotClass::b32) {
    auto& v = *reinterpret_cast<Lanes32*>(slot);
    for (std::uint32_t& x : v.v) x = x != 0 ? ~0u : 0u;
    return;
  }
  auto* const v = reinterpret_cast<std::uint64_t*>(slot);
  for (std::size_t i = 0; i < bytes_of(c) / sizeof *v; ++i)
    v[i] = v[i] != 0 ? ~std::uint64_t{0} : 0;
}

// Values from lanes that take no part. That such a lane is in range is known all the same.
void add_absent(WarpRun& w, Uses uses, std::uint32_t lanes) {
  for (const OperandUse& u : uses) {
    if (!u.written || u.cls != SlotClass::b32) continue;
    auto& shadow = *reinterpret_cast<Lanes32*>(shadow_of(w, u));
    for_lanes(lanes, [&](unsigned l) { shadow.v[l] = ~0u; });
  }
}

// Runs the handler normally, and again with the undefined bits of the operands selected by `takes`
// changed. Result bits that change are undefined. For up to three such operands it tries all
// combinations, which is exact for operations on single bits. A shuffle may also find values
// undefined by itself.
template <class Takes>
void run_and_vary(WarpRun& w, const Instr& in, Uses uses, bool whole, Takes&& takes) {
  std::vector<const OperandUse*> varied;
  for (const OperandUse& u : uses) {
    if (u.written || !takes(u) || undefined_lanes(w, u) == 0) continue;
    const auto same = [&](const OperandUse* v) { return v->slot == u.slot && v->cls == u.cls; };
    if (std::ranges::none_of(varied, same)) varied.push_back(&u);
  }
  if (varied.empty()) {
    in.run(w, in);
    clear_written(w, uses);
    if (!whole) add_absent(w, uses, std::exchange(w.seen_undefined, 0));
    return;
  }
  save(w, uses, w.saved);
  const Lanes32 carry = w.carry;
  in.run(w, in);
  const std::uint32_t absent = whole ? 0 : std::exchange(w.seen_undefined, 0);
  const UndefinedRead last = w.last_undefined;
  save(w, uses, w.results);
  const Lanes32 carry_after = w.carry;
  w.changed.assign(w.saved.size(), std::byte{0});

  const auto attempt = [&](auto&& change) {
    restore(w, uses, w.saved);
    w.carry = carry;
    for (std::size_t v = 0; v < varied.size(); ++v) {
      const OperandUse& u = *varied[v];
      auto* const value = reinterpret_cast<std::uint32_t*>(register_of(w, u));
      const auto* const undefined = reinterpret_cast<const std::uint32_t*>(shadow_of(w, u));
      const std::size_t words = bytes_of(u.cls) / sizeof(std::uint32_t);
      for (std::size_t i = 0; i < words; ++i) value[i] = change(v, value[i], undefined[i]);
    }
    in.run(w, in);
    each_slot(uses, [&](const OperandUse& u, std::size_t at) {
      if (!u.written) return;
      const auto* const now = reinterpret_cast<const std::uint32_t*>(register_of(w, u));
      const auto* const before = reinterpret_cast<const std::uint32_t*>(w.results.data() + at);
      auto* const changed = reinterpret_cast<std::uint32_t*>(w.changed.data() + at);
      const std::size_t words = bytes_of(u.cls) / sizeof(std::uint32_t);
      for (std::size_t i = 0; i < words; ++i) changed[i] |= now[i] ^ before[i];
    });
  };
  constexpr std::size_t kCombined = 3;
  if (varied.size() <= kCombined) {
    for (std::uint32_t set = 1; set < 1u << varied.size(); ++set) {
      attempt([&](std::size_t v, std::uint32_t value, std::uint32_t undefined) {
        return ((set >> v) & 1u) != 0 ? value ^ undefined : value;
      });
    }
  } else {
    attempt([](std::size_t, std::uint32_t value, std::uint32_t undefined) {
      return value ^ undefined;
    });
  }
  // For operations on many bits and lanes at once: NaN propagates wherever a value does.
  attempt(
      [](std::size_t, std::uint32_t value, std::uint32_t undefined) { return value | undefined; });
  attempt(
      [](std::size_t, std::uint32_t value, std::uint32_t undefined) { return value & ~undefined; });
  restore(w, uses, w.saved);
  restore_written(w, uses, w.results);
  w.carry = carry_after;
  each_slot(uses, [&](const OperandUse& u, std::size_t at) {
    if (!u.written) return;
    if (whole) widen_changes(w.changed.data() + at, u.cls);
    blend(w, shadow_of(w, u), w.changed.data() + at, u.cls);
  });
  if (whole) return;
  w.seen_undefined = 0;
  w.last_undefined = last;
  add_absent(w, uses, absent);
}

// Runs the handler on the shadows in place of the registers.
void run_on_shadow(WarpRun& w, const Instr& in) {
  FrameShadow& s = shadow_of(w);
  std::byte* const regs = w.regs;
  std::uint32_t* const preds = w.preds;
  w.regs = s.bits.data();
  w.preds = s.preds.data();
  in.run(w, in);
  w.regs = regs;
  w.preds = preds;
}

void run_copy(WarpRun& w, const Instr& in, Uses uses, bool always) {
  in.run(w, in);
  bool any = always;
  for (const OperandUse& u : uses) any = any || lanes_set(shadow_of(w, u), u.cls) != 0;
  // A destination that is also a source still has the source's shadow.
  if (any) run_on_shadow(w, in);
}

// Everything from the lowest undefined bit of any source upwards.
void run_upwards(WarpRun& w, const Instr& in, Uses uses, unsigned width) {
  alignas(64) std::uint64_t bits[kLanes] = {};
  const std::uint64_t mask = low_mask(width);
  for (const OperandUse& u : uses) {
    if (u.written || undefined_lanes(w, u, width) == 0) continue;
    const std::byte* const shadow = shadow_of(w, u);
    for (unsigned l = 0; l < kLanes; ++l) {
      bits[l] |= mask & (u.cls == SlotClass::b32 ? reinterpret_cast<const Lanes32*>(shadow)->v[l]
                                                 : reinterpret_cast<const Lanes64*>(shadow)->v[l]);
    }
  }
  in.run(w, in);
  for (std::uint64_t& b : bits) b = (b | (0 - b)) & mask;
  for (const OperandUse& u : uses) {
    if (!u.written) continue;
    alignas(64) std::byte all[sizeof(Lanes64)];
    if (u.cls == SlotClass::b32) {
      auto& v = *reinterpret_cast<Lanes32*>(all);
      for (unsigned l = 0; l < kLanes; ++l) v.v[l] = static_cast<std::uint32_t>(bits[l]);
    } else {
      std::memcpy(all, bits, sizeof bits);
    }
    blend(w, shadow_of(w, u), all, u.cls);
  }
}

void run_whole(WarpRun& w, const Instr& in, Uses uses, unsigned width) {
  const std::uint32_t lanes = undefined_sources(w, uses, width);
  in.run(w, in);
  for (const OperandUse& u : uses) {
    if (u.written) set_whole(w, u, lanes);
  }
}

// Lanes in which defined bits of the two values differ, which decides equality.
std::uint32_t surely_unequal(WarpRun& w, const OperandUse& a, const OperandUse& b,
                             std::uint64_t mask) {
  if (a.cls != b.cls) return 0;
  const auto at = [](const std::byte* slot, SlotClass c, unsigned l) -> std::uint64_t {
    return c == SlotClass::b32 ? reinterpret_cast<const Lanes32*>(slot)->v[l]
                               : reinterpret_cast<const Lanes64*>(slot)->v[l];
  };
  std::uint32_t lanes = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    const std::uint64_t differ = at(register_of(w, a), a.cls, l) ^ at(register_of(w, b), b.cls, l);
    const std::uint64_t unknown = at(shadow_of(w, a), a.cls, l) | at(shadow_of(w, b), b.cls, l);
    lanes |= ((differ & ~unknown & mask) != 0 ? 1u : 0u) << l;
  }
  return lanes;
}

// setp: compares two values, and a predicate may decide alone.
void run_compare(WarpRun& w, const Instr& in, Uses uses, Spread rule) {
  std::uint32_t lanes = 0, decided = 0;
  const OperandUse* values[2] = {nullptr, nullptr};
  std::size_t count = 0;
  for (const OperandUse& u : uses) {
    if (u.written) continue;
    if (u.cls == SlotClass::predicate) {
      const std::uint32_t c = w.preds[u.slot], unknown = undefined_lanes(w, u);
      if ((rule.flags & Spread::kAnd) != 0) decided |= ~c & ~unknown;
      if ((rule.flags & Spread::kOr) != 0) decided |= c & ~unknown;
      continue;
    }
    lanes |= undefined_lanes(w, u, rule.width);
    if (count < 2) values[count++] = &u;
  }
  if (lanes != 0 && (rule.flags & Spread::kEquality) != 0 && count == 2) {
    lanes &= ~surely_unequal(w, *values[0], *values[1], low_mask(rule.width));
  }
  run_and_vary(w, in, uses, false,
               [](const OperandUse& u) { return u.cls == SlotClass::predicate; });
  lanes &= ~decided;
  if (lanes == 0) return;
  for (const OperandUse& u : uses) {
    if (u.written) shadow_of(w).preds[u.slot] |= lanes & w.active;
  }
}

// Reports undefined addresses, which then count as defined.
void check_addresses(WarpRun& w, Uses uses) {
  std::uint32_t lanes = 0;
  for (const OperandUse& u : uses) {
    if (u.written || !u.address) continue;
    const std::uint32_t here = undefined_lanes(w, u);
    if (here != 0) set_whole(w, u, 0);
    lanes |= here;
  }
  if (lanes != 0) report_undefined(w, UndefinedUse::address, lanes);
}

// After a load: what it wrote takes the shadow of what it read.
void take_loaded(WarpRun& w, const Instr& in, Uses uses) {
  const std::uint32_t seen = std::exchange(w.seen_undefined, 0);
  if (seen == 0) return clear_written(w, uses);
  bool lost = false;  // the address was overwritten by the loaded value
  for (const OperandUse& u : uses) {
    lost |= u.address && std::ranges::any_of(uses, [&](const OperandUse& d) {
              return d.written && d.cls == u.cls && d.slot == u.slot;
            });
  }
  if (lost) {
    for (const OperandUse& u : uses) {
      if (u.written) set_whole(w, u, seen);
    }
    return;
  }
  save(w, uses, w.results);
  w.replaying = true;
  in.run(w, in);
  w.replaying = false;
  for (const OperandUse& u : uses) {
    if (u.written) blend(w, shadow_of(w, u), register_of(w, u), u.cls);
  }
  restore_written(w, uses, w.results);
}

void run_store(WarpRun& w, const Instr& in, Uses uses) {
  check_addresses(w, uses);
  in.run(w, in);
  std::uint32_t lanes = 0;
  for (const OperandUse& u : uses) {
    if (!u.written && !u.address) lanes |= undefined_lanes(w, u);
  }
  if (lanes == 0) return;
  save(w, uses, w.saved);
  for (const OperandUse& u : uses) {
    if (u.written || u.address) continue;
    std::memcpy(register_of(w, u), shadow_of(w, u), bytes_of(u.cls));
  }
  w.replaying = true;
  in.run(w, in);
  w.replaying = false;
  restore(w, uses, w.saved);
}

void run_atomic(WarpRun& w, const Instr& in, Uses uses, bool exchange) {
  check_addresses(w, uses);
  std::uint32_t lanes = 0;
  for (const OperandUse& u : uses) {
    if (u.written || u.address) continue;
    // Parts of exchanged data may be padding.
    if (!exchange) lanes |= undefined_lanes(w, u);
  }
  if (lanes != 0) report_undefined(w, UndefinedUse::operand, lanes);
  in.run(w, in);
  const std::uint32_t seen = std::exchange(w.seen_undefined, 0);
  for (const OperandUse& u : uses) {
    if (u.written) set_whole(w, u, seen);
  }
}

void step(WarpRun& w, const Instr& in, Uses uses, Spread rule) {
  switch (rule.kind) {
    case Kind::none: {
      check_addresses(w, uses);
      in.run(w, in);
      const std::uint32_t seen = std::exchange(w.seen_undefined, 0);
      for (const OperandUse& u : uses) {
        if (u.written) set_whole(w, u, seen);
      }
      return;
    }
    case Kind::copy: return run_copy(w, in, uses, false);
    case Kind::rows: return run_copy(w, in, uses, true);
    case Kind::bits:
    case Kind::values:
      return run_and_vary(w, in, uses, rule.kind == Kind::values,
                          [](const OperandUse&) { return true; });
    case Kind::upwards: return run_upwards(w, in, uses, rule.width);
    case Kind::whole: return run_whole(w, in, uses, rule.width);
    case Kind::compare: return run_compare(w, in, uses, rule);
    case Kind::load:
      check_addresses(w, uses);
      in.run(w, in);
      return take_loaded(w, in, uses);
    case Kind::store: return run_store(w, in, uses);
    case Kind::atomic: return run_atomic(w, in, uses, false);
    case Kind::exchange: return run_atomic(w, in, uses, true);
  }
}

// Reports an undefined guard, which decides as a branch does; it then counts as defined.
void check_guard(WarpRun& w, const Instr& in, std::uint32_t lanes) {
  if (in.guard < 0) return;
  std::uint32_t& shadow = shadow_of(w).preds[static_cast<std::size_t>(in.guard)];
  lanes &= shadow;
  if (lanes == 0) return;
  shadow &= ~lanes;
  report_undefined(w, UndefinedUse::branch, lanes);
}

void check_terminator(WarpRun& w, const Code& code, const Block& block) {
  if (block.flow == Flow::next || block.flow == Flow::poll) return;
  w.pc = code.first_pc + block.end;
  check_guard(w, code.code[block.end], w.active);
  std::uint32_t lanes = 0;
  for (const OperandUse& u : code.uses_of(block.end)) {
    if (u.written) continue;
    lanes |= undefined_lanes(w, u);
    if (lanes != 0) set_whole(w, u, 0);
  }
  if (lanes == 0) return;
  report_undefined(w, block.flow == Flow::barrier ? UndefinedUse::barrier : UndefinedUse::branch,
                   lanes);
}

void begin_taint(WarpRun& w) {
  w.tainted = true;
  for (const auto& frame : w.frames) clear_shadow(*frame);
  w.until_scan = w.scan_interval = kFirstScan;
}

// Checks whether the warp has no undefined values left, at growing intervals.
void scan(WarpRun& w) {
  if (--w.until_scan != 0) return;
  for (const auto& frame : w.frames) {
    if (frame->lanes == 0) continue;
    const auto* const words = reinterpret_cast<const std::uint64_t*>(frame->shadow->bits.data());
    const std::size_t n = frame->shadow->bits.size() / sizeof *words;
    const bool any = std::any_of(words, words + n, [](std::uint64_t x) { return x != 0; }) ||
                     std::ranges::any_of(frame->shadow->preds, [](auto x) { return x != 0; });
    if (!any) continue;
    w.until_scan = w.scan_interval = std::min(2 * w.scan_interval, kLastScan);
    return;
  }
  w.tainted = false;
}

}  // namespace

void clear_shadow(Frame& frame) {
  if (frame.shadow == nullptr) frame.shadow = std::make_unique<FrameShadow>();
  FrameShadow& s = *frame.shadow;
  s.bits.grow(std::max<std::size_t>(frame.regs.size(), AlignedBuffer::kAlign));
  std::memset(s.bits.data(), 0, s.bits.size());
  s.preds.assign(frame.preds.size(), 0);
}

void note_undefined(WarpRun& w, const WarpAccess& a, std::uint32_t lanes, bool shared) {
  w.seen_undefined |= lanes;
  w.last_undefined = {w.pc, a.bytes, a.address[std::countr_zero(lanes)], shared};
  w.block_end = nullptr;
}

void report_undefined(WarpRun& w, UndefinedUse use, std::uint32_t lanes) {
  RawFinding f;
  f.kind = FindingKind::uninitialised;
  f.use = use;
  f.pc = w.pc;
  f.block = w.block->index;
  f.thread = w.index * kWarpSize + static_cast<std::uint32_t>(std::countr_zero(lanes));
  f.address = w.last_undefined.address;
  f.bytes = w.last_undefined.bytes;
  f.shared = w.last_undefined.shared;
  f.other_pc = w.last_undefined.pc;
  f.count = static_cast<std::uint64_t>(std::popcount(lanes));
  w.block->checker.report(f);
}

void run_after_undefined(WarpRun& w, const Code& code, const Block& block, const Instr& in,
                         std::uint32_t mask) {
  begin_taint(w);
  const auto index = static_cast<std::size_t>(&in - code.code.data());
  const std::uint32_t active = guarded(w, in, mask);
  w.set_active(active);
  w.pc = code.first_pc + static_cast<std::uint32_t>(index);
  const Spread rule = code.spread[index];
  const Uses uses = code.uses_of(index);
  if (rule.kind == Kind::load) {
    take_loaded(w, in, uses);
  } else if (rule.kind == Kind::bits) {
    add_absent(w, uses, std::exchange(w.seen_undefined, 0));
  } else {
    const std::uint32_t seen = std::exchange(w.seen_undefined, 0);
    for (const OperandUse& u : uses) {
      if (u.written) set_whole(w, u, seen);
    }
  }
  run_tainted(w, code, block, &in + 1, mask);
}

void run_tainted(WarpRun& w, const Code& code, const Block& block, const Instr* from,
                 std::uint32_t mask) {
  const Instr* const end = code.code.data() + block.end;
  for (const Instr* in = from; in != end; ++in) {
    const auto index = static_cast<std::size_t>(in - code.code.data());
    w.pc = code.first_pc + static_cast<std::uint32_t>(index);
    w.set_active(mask);
    check_guard(w, *in, mask);
    const std::uint32_t active = guarded(w, *in, mask);
    if (active == 0) continue;
    w.set_active(active);
    step(w, *in, code.uses_of(index), code.spread[index]);
  }
  w.set_active(mask);
  check_terminator(w, code, block);
  scan(w);
}

void set_local_undefined(WarpRun& w, std::uint64_t offset, unsigned lane, std::uint32_t bits,
                         std::uint32_t bytes) {
  if (w.local_undefined.empty() && bits == 0) return;
  if (w.local_undefined.size() < w.local_bytes) w.local_undefined.resize(w.local_bytes, 0);
  for (std::uint32_t b = 0; b < bytes; ++b) {
    std::uint32_t& lanes = w.local_undefined[offset + b];
    lanes = (lanes & ~(1u << lane)) | (((bits >> b) & 1u) << lane);
  }
}

std::uint32_t local_undefined_bytes(const WarpRun& w, std::uint64_t offset, unsigned lane,
                                    std::uint32_t bytes) {
  std::uint32_t bits = 0;
  for (std::uint32_t b = 0; b < bytes && offset + b < w.local_undefined.size(); ++b) {
    bits |= ((w.local_undefined[offset + b] >> lane) & 1u) << b;
  }
  return bits;
}

}  // namespace assay::sim
