// Instructions that exchange values between the lanes of a warp: shfl.sync, vote.sync, match.sync,
// redux.sync, activemask, elect.sync (PTX ISA 9.0, 9.7.9.6 and 9.7.13).
//
// When a handler of a .sync form runs, warp.active holds every live lane of the member mask. The
// interpreter detects lanes that execute it without being in their mask, and named lanes that never
// arrive. Lanes with different masks may run together (the tiles of a cooperative group): lanes
// with the same mask form a group, and see only each other.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "sim/execution/warp.h"
#include "sim/operations/instruction_set.h"

namespace assay::sim {
namespace {

// Bit l: from.v[l] == value.
template <class Lanes, class Value>
std::uint32_t lanes_equal(const Lanes& from, Value value) {
  Lanes32 equal;
  for (int lane = 0; lane < 32; ++lane) equal.v[lane] = from.v[lane] == value ? ~0u : 0;
  return to_mask(equal);
}

// Calls body(lanes) once for each member mask. No group reads another's lanes, so the destination
// may be any of the sources, masks included.
template <class Body>
void for_each_group(const Warp& warp, const Lanes32& members, Body body) {
  for (std::uint32_t rest = warp.active; rest != 0;) {
    const std::uint32_t group = lanes_equal(members, members.v[std::countr_zero(rest)]) & rest;
    body(group);
    rest &= ~group;
  }
}

void broadcast(Lanes32& to, std::uint32_t lanes, std::uint32_t value) {
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    to.v[lane] = (lanes >> lane & 1u) != 0 ? value : to.v[lane];
  }
}

// to[l] = from[source[l]], sources below 32. Uses a permutation of registers if the machine has
// one, since gathering from memory is several times slower.
void permute(const Lanes32& from, const Lanes32& source, Lanes32& to) {
#if __has_builtin(__builtin_shuffle)
  typedef std::uint32_t Half __attribute__((vector_size(64)));
  Half low, high, index;
  std::memcpy(&low, from.v, sizeof low);
  std::memcpy(&high, from.v + 16, sizeof high);
  for (int half = 0; half < 2; ++half) {
    std::memcpy(&index, source.v + 16 * half, sizeof index);
    const Half result = __builtin_shuffle(low, high, index);
    std::memcpy(to.v + 16 * half, &result, sizeof result);
  }
#else
  for (int lane = 0; lane < 32; ++lane) to.v[lane] = from.v[source.v[lane]];
#endif
}

enum class Shuffle : std::uint8_t { up, down, bfly, idx };

// The lane that a shuffle reads, and whether it is in range. Two inlined functions without a struct
// between them; otherwise the loops over them do not vectorise.
template <Shuffle mode>
[[gnu::always_inline]] constexpr std::uint32_t source_lane(std::uint32_t lane, std::uint32_t offset,
                                                           std::uint32_t segment) {
  if constexpr (mode == Shuffle::up) return lane - offset;  // below zero: huge
  if constexpr (mode == Shuffle::down) return lane + offset;
  if constexpr (mode == Shuffle::bfly) return lane ^ offset;
  return (lane & segment) | (offset & ~segment);
}

template <Shuffle mode>
[[gnu::always_inline]] constexpr bool is_in_range(std::uint32_t source, std::uint32_t lane,
                                                  std::uint32_t clamp, std::uint32_t segment) {
  const std::uint32_t limit = (lane & segment) | (clamp & ~segment);
  return mode == Shuffle::up ? static_cast<std::int32_t>(source) >= static_cast<std::int32_t>(limit)
                             : source <= limit;
}

// The usual shuffle has literals for everything except the value, with the whole warp as members.
// Selection::imm then holds offset and clamp, and this bit.
constexpr std::uint64_t kLiteral = std::uint64_t{1} << 63;

// By offset, what each lane reads if the whole warp is one segment, and which lanes are in range.
template <Shuffle mode>
struct WholeWarp {
  static constexpr std::uint32_t kClamp = mode == Shuffle::up ? 0 : 31;
  Lanes32 source[32];
  std::uint32_t in_range[32];

  constexpr WholeWarp() : source{}, in_range{} {
    for (std::uint32_t offset = 0; offset < 32; ++offset) {
      for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t from = source_lane<mode>(lane, offset, 0);
        const bool valid = is_in_range<mode>(from, lane, kClamp, 0);
        source[offset].v[lane] = valid ? from : lane;
        in_range[offset] |= static_cast<std::uint32_t>(valid) << lane;
      }
    }
  }
};
template <Shuffle mode>
constexpr WholeWarp<mode> kWholeWarp;

// Such a shuffle of a full warp; returns the same as shuffle().
template <Shuffle mode>
std::uint32_t shuffle_full(std::uint64_t imm, const Lanes32& a, Lanes32& d) {
  const auto offset = static_cast<std::uint32_t>(imm & 31);
  const auto clamp = static_cast<std::uint32_t>(imm >> 8 & 31);
  const auto segment = static_cast<std::uint32_t>(imm >> 16 & 31);
  Lanes32 result;
  if (segment == 0 && clamp == WholeWarp<mode>::kClamp) {
    permute(a, kWholeWarp<mode>.source[offset], result);
    d = result;
    return kWholeWarp<mode>.in_range[offset];
  }
  Lanes32 source, in_range;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t from = source_lane<mode>(lane, offset, segment);
    const bool valid = is_in_range<mode>(from, lane, clamp, segment);
    source.v[lane] = valid ? from : lane;
    in_range.v[lane] = valid ? ~0u : 0;
  }
  permute(a, source, result);
  d = result;
  return to_mask(in_range);
}

// The mask of lanes whose source is in range. A lane whose source is out of range keeps its own
// value, and so does one whose source takes no part, where a GPU gives any.
template <Shuffle mode>
std::uint32_t shuffle(Warp& warp, const Lanes32& a, const Lanes32& b, const Lanes32& c,
                      const Lanes32& members, Lanes32& d) {
  Lanes32 source, result, in_range, absent;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t offset = b.v[lane] & 31u, clamp = c.v[lane] & 31u;
    const std::uint32_t segment = c.v[lane] >> 8 & 31u;
    const std::uint32_t from = source_lane<mode>(lane, offset, segment);
    const bool valid = is_in_range<mode>(from, lane, clamp, segment);
    const std::uint32_t present = members.v[lane] & warp.active;
    const bool there = (present >> (from & 31u) & 1u) != 0;
    source.v[lane] = valid && there ? from & 31u : lane;
    in_range.v[lane] = valid ? ~0u : 0;
    absent.v[lane] = valid && !there ? ~0u : 0;
  }
  if (const std::uint32_t lanes = to_mask(absent) & warp.active; lanes != 0)
    note_absent_sources(warp, lanes);
  permute(a, source, result);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t mask = warp.lane_mask.v[lane];
    d.v[lane] = (result.v[lane] & mask) | (d.v[lane] & ~mask);
  }
  return to_mask(in_range);
}

template <Shuffle mode>
void run_shuffle(Warp& w, const Instr& i) {
  if ((i.imm & kLiteral) != 0 && w.full()) {
    shuffle_full<mode>(i.imm, w.r32(i.a), w.r32(i.d));
    return;
  }
  shuffle<mode>(w, w.r32(i.a), w.r32(i.b), w.r32(i.c), w.r32(i.e), w.r32(i.d));
}

// d|p, a, b, c, members
template <Shuffle mode>
void run_shuffle_with_pred(Warp& w, const Instr& i) {
  const std::uint32_t* slot = w.extra + i.aux;
  if ((i.imm & kLiteral) != 0 && w.full()) {
    w.preds[slot[1]] = shuffle_full<mode>(i.imm, w.r32(slot[2]), w.r32(slot[0]));
    return;
  }
  w.set_pred(slot[1], shuffle<mode>(w, w.r32(slot[2]), w.r32(slot[3]), w.r32(slot[4]),
                                    w.r32(slot[5]), w.r32(slot[0])));
}

enum class Vote : std::uint8_t { all, any, uni };

template <Vote mode>
void run_vote(Warp& w, const Instr& i) {
  const std::uint32_t votes = w.preds[i.a];
  std::uint32_t result = 0;
  for_each_group(w, w.r32(i.b), [&](std::uint32_t group) {
    const std::uint32_t ayes = votes & group;
    const bool all = ayes == group, any = ayes != 0;
    if (mode == Vote::all ? all : mode == Vote::any ? any : all || !any) result |= group;
  });
  w.set_pred(i.d, result);
}

void run_ballot(Warp& w, const Instr& i) {
  const std::uint32_t votes = w.preds[i.a];
  for_each_group(w, w.r32(i.b),
                 [&](std::uint32_t group) { broadcast(w.r32(i.d), group, votes & group); });
}

Lanes32& lanes_of(Warp& w, std::uint32_t slot, const Lanes32*) { return w.r32(slot); }
Lanes64& lanes_of(Warp& w, std::uint32_t slot, const Lanes64*) { return w.r64(slot); }

template <class Lanes>
void run_match_any(Warp& w, const Instr& i) {
  const Lanes& a = lanes_of(w, i.a, static_cast<const Lanes*>(nullptr));
  for_each_group(w, w.r32(i.b), [&](std::uint32_t group) {
    for (std::uint32_t rest = group; rest != 0;) {
      const std::uint32_t same = lanes_equal(a, a.v[std::countr_zero(rest)]) & rest;
      broadcast(w.r32(i.d), same, same);
      rest &= ~same;
    }
  });
}

// d|p, a, members: the group if all its values are equal, else 0.
template <class Lanes, bool with_pred>
void run_match_all(Warp& w, const Instr& i) {
  const Lanes& a = lanes_of(w, i.a, static_cast<const Lanes*>(nullptr));
  std::uint32_t equal = 0;
  for_each_group(w, w.r32(i.b), [&](std::uint32_t group) {
    const bool all = (lanes_equal(a, a.v[std::countr_zero(group)]) & group) == group;
    broadcast(w.r32(i.d), group, all ? group : 0);
    if (all) equal |= group;
  });
  if (with_pred) w.set_pred(i.e, equal);
}

struct Add {
  static constexpr std::uint32_t identity = 0;
  static std::uint32_t of(std::uint32_t x, std::uint32_t y) { return x + y; }
};
struct And {
  static constexpr std::uint32_t identity = 0xffffffffu;
  static std::uint32_t of(std::uint32_t x, std::uint32_t y) { return x & y; }
};
struct Or {
  static constexpr std::uint32_t identity = 0;
  static std::uint32_t of(std::uint32_t x, std::uint32_t y) { return x | y; }
};
struct Xor {
  static constexpr std::uint32_t identity = 0;
  static std::uint32_t of(std::uint32_t x, std::uint32_t y) { return x ^ y; }
};
template <class Int>
struct Min {
  static constexpr auto identity = static_cast<std::uint32_t>(std::numeric_limits<Int>::max());
  static std::uint32_t of(std::uint32_t x, std::uint32_t y) {
    return static_cast<std::uint32_t>(std::min(static_cast<Int>(x), static_cast<Int>(y)));
  }
};
template <class Int>
struct Max {
  static constexpr auto identity = static_cast<std::uint32_t>(std::numeric_limits<Int>::min());
  static std::uint32_t of(std::uint32_t x, std::uint32_t y) {
    return static_cast<std::uint32_t>(std::max(static_cast<Int>(x), static_cast<Int>(y)));
  }
};

template <class Op>
void run_redux(Warp& w, const Instr& i) {
  const Lanes32& a = w.r32(i.a);
  for_each_group(w, w.r32(i.b), [&](std::uint32_t group) {
    std::uint32_t sum = Op::identity;
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      sum = Op::of(sum, (group >> lane & 1u) != 0 ? a.v[lane] : Op::identity);
    }
    broadcast(w.r32(i.d), group, sum);
  });
}

void run_activemask(Warp& w, const Instr& i) { broadcast(w.r32(i.d), w.active, w.active); }

// d|p, members: the lowest member leads.
void run_elect(Warp& w, const Instr& i) {
  std::uint32_t leaders = 0;
  for_each_group(w, w.r32(i.a), [&](std::uint32_t group) {
    const auto leader = static_cast<std::uint32_t>(std::countr_zero(group));
    broadcast(w.r32(i.d), group, leader);
    leaders |= 1u << leader;
  });
  w.set_pred(i.e, leaders);
}

// Selection.

[[noreturn]] void refuse(const ptx::Instruction& i, const char* why) {
  throw Unsupported(i.full_name() + ": " + why);
}

using Form = OperandForm;

Selection select(Handler run, std::vector<Form> operands, bool rendezvous = true) {
  Selection s;
  s.run = run;
  s.cls = InstrClass::warp;
  s.rendezvous = rendezvous;
  s.mask_operand = static_cast<std::uint8_t>(operands.size() - 1);  // the last operand, in all
                                                                    // .sync forms
  s.operands = std::move(operands);
  return s;
}

// The qualifiers without .sync, "add.u32"; throws if .sync is missing. It may appear anywhere: the
// ISA writes vote.sync.ballot.b32 and match.any.sync.b32, CUB vote.ballot.sync.b32, and ptxas
// accepts all of these.
std::string qualifiers(const ptx::Instruction& i) {
  if (std::count(i.modifiers.begin(), i.modifiers.end(), "sync") != 1) {
    // Volta and later GPUs have only the .sync forms (PTX ISA 6.4).
    refuse(i, "the form without .sync does not exist on sm_70 and later");
  }
  std::string all;
  for (const std::string& m : i.modifiers) {
    if (m == "sync") continue;
    if (!all.empty()) all += '.';
    all += m;
  }
  return all;
}

// Selection::imm of a shuffle.
std::uint64_t literals(const ptx::Instruction& i) {
  const std::size_t n = i.operands.size();
  if (n < 3) return 0;
  for (std::size_t o = n - 3; o < n; ++o) {
    if (i.operands[o].kind != ptx::Operand::Kind::integer) return 0;
  }
  if (static_cast<std::uint32_t>(i.operands[n - 1].value) != ~std::uint32_t{0}) return 0;
  const std::uint64_t offset = i.operands[n - 3].value, clamp = i.operands[n - 2].value;
  return kLiteral | (offset & 31) | (clamp & 31) << 8 | (clamp >> 8 & 31) << 16;
}

template <Shuffle mode>
Selection select_shuffle(const ptx::Instruction& i) {
  if (!i.paired) {
    Selection s = select(run_shuffle<mode>,
                         {Form::dst32, Form::src32, Form::src32, Form::src32, Form::src32});
    s.imm = literals(i);
    return s;
  }
  Selection s = select(run_shuffle_with_pred<mode>, {Form::dst32, Form::dst_pred, Form::src32,
                                                     Form::src32, Form::src32, Form::src32});
  s.uses_extra = true;
  s.imm = literals(i);
  return s;
}

Selection select_match_all(bool wide, bool with_pred) {
  const Form a = wide ? Form::src64 : Form::src32;
  if (with_pred) {
    return select(wide ? run_match_all<Lanes64, true> : run_match_all<Lanes32, true>,
                  {Form::dst32, Form::dst_pred, a, Form::src32});
  }
  return select(wide ? run_match_all<Lanes64, false> : run_match_all<Lanes32, false>,
                {Form::dst32, a, Form::src32});
}

struct Named {
  std::string_view name;
  Handler run;
};

Handler find(std::initializer_list<Named> all, std::string_view name) {
  const auto* at =
      std::find_if(all.begin(), all.end(), [&](const Named& n) { return n.name == name; });
  return at == all.end() ? nullptr : at->run;
}

Selection select_variant(const ptx::Instruction& i) {
  const std::string name = qualifiers(i);
  if (i.opcode == "shfl") {
    if (name == "up.b32") return select_shuffle<Shuffle::up>(i);
    if (name == "down.b32") return select_shuffle<Shuffle::down>(i);
    if (name == "bfly.b32") return select_shuffle<Shuffle::bfly>(i);
    if (name == "idx.b32") return select_shuffle<Shuffle::idx>(i);
  } else if (i.opcode == "vote") {
    if (name == "ballot.b32") return select(run_ballot, {Form::dst32, Form::src_pred, Form::src32});
    const Handler run = find({{"all.pred", run_vote<Vote::all>},
                              {"any.pred", run_vote<Vote::any>},
                              {"uni.pred", run_vote<Vote::uni>}},
                             name);
    if (run != nullptr) return select(run, {Form::dst_pred, Form::src_pred, Form::src32});
  } else if (i.opcode == "redux") {
    const Handler run = find({{"add.u32", run_redux<Add>},
                              {"add.s32", run_redux<Add>},
                              {"min.u32", run_redux<Min<std::uint32_t>>},
                              {"min.s32", run_redux<Min<std::int32_t>>},
                              {"max.u32", run_redux<Max<std::uint32_t>>},
                              {"max.s32", run_redux<Max<std::int32_t>>},
                              {"and.b32", run_redux<And>},
                              {"or.b32", run_redux<Or>},
                              {"xor.b32", run_redux<Xor>}},
                             name);
    if (run != nullptr) return select(run, {Form::dst32, Form::src32, Form::src32});
    if (name.ends_with(".f32")) refuse(i, "needs sm_100a");
  } else if (i.opcode == "match" && (name.ends_with(".b32") || name.ends_with(".b64"))) {
    const bool wide = name.ends_with("64");
    if (name.starts_with("any.") && name.size() == 7 && !i.paired) {
      return select(wide ? run_match_any<Lanes64> : run_match_any<Lanes32>,
                    {Form::dst32, wide ? Form::src64 : Form::src32, Form::src32});
    }
    if (name.starts_with("all.") && name.size() == 7) return select_match_all(wide, i.paired);
  }
  refuse(i, "no such variant");
}

}  // namespace

std::optional<Selection> select_warp_op(const ptx::Instruction& i) {
  std::optional<Selection> s;
  if (i.opcode == "activemask") {
    s = select(run_activemask, {Form::dst32}, false);
  } else if (i.opcode == "elect") {
    if (i.modifiers != std::vector<std::string>{"sync"} || !i.paired) refuse(i, "no such variant");
    s = select(run_elect, {Form::dst32, Form::dst_pred, Form::src32});
  } else if (i.opcode == "shfl" || i.opcode == "vote" || i.opcode == "match" ||
             i.opcode == "redux") {
    s = select_variant(i);
  } else {
    return std::nullopt;
  }
  if (s->operands.size() != i.operands.size()) refuse(i, "an unexpected number of operands");
  return s;
}

}  // namespace assay::sim
