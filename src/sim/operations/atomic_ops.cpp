// atom and red (PTX ISA, sections 9.7.13.5 and 9.7.13.7), scalars and vectors.
//
// The lanes of a warp are processed one after another, the lowest first. If blocks run on several
// host threads, only operations whose order does not matter run concurrently (see
// FlowSelection::ordered), and on global memory they are atomic for the host as well.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sim/execution/memory_path.h"
#include "sim/memory/lane_pattern.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/lane_ops.h"
#include "sim/operations/modifiers.h"
#include "sim/operations/word_operations.h"

namespace assay::sim {

using ptx::Space;
using ptx::Type;

namespace {

__extension__ using Wide = unsigned __int128;

template <class T>
struct Exchange {
  static T apply(T, T b) { return b; }
};

template <class W>
W source(Warp& w, std::uint32_t slot, unsigned lane) {
  if constexpr (sizeof(W) == 16) {
    return (Wide{w.r64(slot + sizeof(Lanes64)).v[lane]} << 64) | w.r64(slot).v[lane];
  } else if constexpr (sizeof(W) == 8) {
    return w.r64(slot).v[lane];
  } else {
    return static_cast<W>(w.r32(slot).v[lane]);
  }
}

template <class W>
void put(Warp& w, std::uint32_t slot, unsigned lane, W value) {
  if constexpr (sizeof(W) == 16) {
    w.r64(slot).v[lane] = static_cast<std::uint64_t>(value);
    w.r64(slot + sizeof(Lanes64)).v[lane] = static_cast<std::uint64_t>(value >> 64);
  } else if constexpr (sizeof(W) == 8) {
    w.r64(slot).v[lane] = value;
  } else {
    w.r32(slot).v[lane] = value;
  }
}

struct Target {
  std::array<std::byte*, kLanes> host;
  MemoryFlags flags;
  bool shared_with_host_threads;
};

void locate(Warp& warp, const Instr& in, std::uint32_t base, std::uint32_t bytes, Target& out,
            bool exchanges = false) {
  auto& w = run_of(warp);
  out.flags = MemoryFlags::decode(in.e);
  Lanes64 address;
  lane_addresses(w, base, in.imm, out.flags.narrow_address, address);
  if (out.flags.releases) w.block->checker.fence();
  if (out.flags.releases_block) w.block->checker.fence_block(w.index);
  const AccessKind kind = exchanges           ? AccessKind::exchange
                          : out.flags.returns ? AccessKind::atomic
                                              : AccessKind::reduction;
  locate_atomic(w, out.flags.space, address.v, w.active, kind, bytes, out.host.data());
  out.shared_with_host_threads = w.block->grid->parallel && out.flags.space != Space::shared;
}

// d = old [a]; [a] = Op(old, b)
template <class W, class Op>
void atomic(Warp& w, const Instr& in) {
  Target target;
  locate(w, in, in.a, sizeof(W), target, std::is_same_v<Op, Exchange<W>>);
  for_lanes(w.active, [&](unsigned l) {
    const W b = source<W>(w, in.b, l);
    const W old = update<W>(target.host[l], target.shared_with_host_threads,
                            [&](W value) { return static_cast<W>(Op::apply(value, b)); });
    if (target.flags.returns) put(w, in.d, l, old);
  });
}

// add.f32 through a generic address: the memory decides whether subnormals are flushed.
void add_f32_anywhere(Warp& w, const Instr& in) {
  Target target;
  locate(w, in, in.a, 4, target);
  const AlignedBuffer& shared = w.block->shared;
  for_lanes(w.active, [&](unsigned l) {
    const auto b = source<std::uint32_t>(w, in.b, l);
    const bool in_shared = static_cast<std::size_t>(target.host[l] - shared.data()) < shared.size();
    const auto old = update<std::uint32_t>(
        target.host[l], target.shared_with_host_threads, [&](std::uint32_t value) {
          return in_shared ? AddF32::apply(value, b) : AddF32Flushed::apply(value, b);
        });
    if (target.flags.returns) put(w, in.d, l, old);
  });
}

// d = old [a]; if it is b, [a] = c
template <class W>
void compare_and_swap(Warp& w, const Instr& in) {
  Target target;
  locate(w, in, in.a, sizeof(W), target);
  for_lanes(w.active, [&](unsigned l) {
    const W b = source<W>(w, in.b, l), c = source<W>(w, in.c, l);
    const W old = update<W>(target.host[l], target.shared_with_host_threads,
                            [&](W value) { return value == b ? c : value; });
    if (target.flags.returns) put(w, in.d, l, old);
  });
}

// Extra: [results,] address, operands. Each element is atomic by itself.
template <class W, class Op, unsigned kVector>
void vector_atomic(Warp& w, const Instr& in) {
  const bool returns = MemoryFlags::decode(in.e).returns;
  const std::uint32_t* results = w.extra + in.aux;
  const std::uint32_t* address = returns ? results + kVector : results;
  Target target;
  locate(w, in, *address, sizeof(W) * kVector, target);
  for_lanes(w.active, [&](unsigned l) {
    for (unsigned v = 0; v < kVector; ++v) {
      const W b = source<W>(w, address[1 + v], l);
      const W old = update<W>(target.host[l] + v * sizeof(W), target.shared_with_host_threads,
                              [&](W value) { return static_cast<W>(Op::apply(value, b)); });
      if (returns) put(w, results[v], l, old);
    }
  });
}

Handler exchange_handler(Type t) {
  switch (t) {
    case Type::b32: return atomic<std::uint32_t, Exchange<std::uint32_t>>;
    case Type::b64: return atomic<std::uint64_t, Exchange<std::uint64_t>>;
    case Type::b128: return atomic<Wide, Exchange<Wide>>;
    default: return nullptr;
  }
}

Handler cas_handler(Type t) {
  switch (t) {
    case Type::b16: return compare_and_swap<std::uint16_t>;
    case Type::b32: return compare_and_swap<std::uint32_t>;
    case Type::b64: return compare_and_swap<std::uint64_t>;
    case Type::b128: return compare_and_swap<Wide>;
    default: return nullptr;
  }
}

Handler scalar_handler(std::string_view op, Type t, Space space) {
  if (op == "exch") return exchange_handler(t);
  if (op == "cas") return cas_handler(t);
  if (op == "add" && t == Type::f32 && space == Space::generic) return add_f32_anywhere;
  return make_operation(op, t, space == Space::shared,
                        []<class W, class Op>() -> Handler { return atomic<W, Op>; });
}

template <class W, class Op>
Handler of_length(unsigned n) {
  switch (n) {
    case 2: return vector_atomic<W, Op, 2>;
    case 4: return vector_atomic<W, Op, 4>;
    case 8: return vector_atomic<W, Op, 8>;
    default: return nullptr;
  }
}

// Up to 16 bytes: .v2 and .v4 of f32, .v2 to .v8 of halves, .v2 and .v4 of pairs.
template <class H>
Handler half_vector(std::string_view op, bool pairs, unsigned n) {
  using A = AddHalf<H>;
  using Lower = PickHalf<H, false>;
  using Higher = PickHalf<H, true>;
  if (pairs) {
    if (op == "add") return of_length<std::uint32_t, Both<A>>(n);
    if (op == "min") return of_length<std::uint32_t, Both<Lower>>(n);
    if (op == "max") return of_length<std::uint32_t, Both<Higher>>(n);
  } else {
    if (op == "add") return of_length<std::uint16_t, A>(n);
    if (op == "min") return of_length<std::uint16_t, Lower>(n);
    if (op == "max") return of_length<std::uint16_t, Higher>(n);
  }
  return nullptr;
}

Handler vector_handler(std::string_view op, Type t, unsigned n) {
  if (ptx::size_of(t) * n > 16) return nullptr;
  switch (t) {
    case Type::f32: return op == "add" ? of_length<std::uint32_t, AddF32Flushed>(n) : nullptr;
    case Type::f16: return half_vector<Half>(op, false, n);
    case Type::f16x2: return half_vector<Half>(op, true, n);
    case Type::bf16: return half_vector<Bfloat>(op, false, n);
    case Type::bf16x2: return half_vector<Bfloat>(op, true, n);
    default: return nullptr;
  }
}

constexpr std::array<std::string_view, 10> kOperations{"add", "min", "max", "and",  "or",
                                                       "xor", "inc", "dec", "exch", "cas"};

// Whether the result is independent of the order of blocks: integers, with the old value unused.
bool commutes(std::string_view op, Type t) {
  const bool integer = t < Type::f16;
  return integer && op != "inc" && op != "dec" && op != "exch" && op != "cas";
}

struct Forms {
  OperandForm result, source;
};
Forms forms_of(Type t, bool vector) {
  switch (ptx::size_of(t)) {
    case 16: return {OperandForm::dst128, OperandForm::src128};
    case 8: return {OperandForm::dst64, OperandForm::src64};
    default:
      return vector ? Forms{OperandForm::dst32_list, OperandForm::src32_list}
                    : Forms{OperandForm::dst32, OperandForm::src32};
  }
}

}  // namespace

std::optional<FlowSelection> select_atomic(const ptx::Instruction& in, const Names& names) {
  const bool returns = in.opcode == "atom";
  if (!returns && in.opcode != "red") return std::nullopt;
  ptx::Instruction rest = in;  // without the operation
  std::string_view op;
  std::erase_if(rest.modifiers, [&](const std::string& m) {
    const auto found = std::find(kOperations.begin(), kOperations.end(), m);
    if (found != kOperations.end()) op = *found;
    return found != kOperations.end();
  });
  const auto m = memory_modifiers(rest);
  if (!m || m->is_volatile || op.empty()) throw_unsupported(in);
  if (m->space != Space::global && m->space != Space::shared && m->space != Space::generic) {
    throw_unsupported(in);
  }
  const bool vector = m->vector > 1;
  FlowSelection s;
  s.run = vector ? vector_handler(op, m->type, m->vector) : scalar_handler(op, m->type, m->space);
  if (s.run == nullptr || (vector && m->space == Space::shared)) throw_unsupported(in);

  MemoryFlags flags;
  flags.space = m->space;
  const std::size_t address_at = returns ? 1 : 0;
  const std::size_t wanted = address_at + (op == "cas" ? 3 : 2) + (m->cache_policy ? 1 : 0);
  if (in.operands.size() != wanted) throw_unsupported(in, "this number of operands");
  flags.narrow_address = narrow_base(in.operands[address_at], names);
  flags.returns = returns;
  flags.releases = m->releases && m->beyond_block && m->space != Space::shared;
  flags.releases_block = m->releases;
  s.e = flags.encode();
  s.cls = InstrClass::memory;
  const Forms forms = forms_of(m->type, vector);
  if (returns) s.operands.push_back(forms.result);
  s.operands.push_back(address_form(flags.narrow_address));
  s.operands.push_back(forms.source);
  if (op == "cas") s.operands.push_back(forms.source);
  if (m->cache_policy) s.operands.push_back(OperandForm::ignored);

  const bool used = returns && in.operands[0].kind != ptx::Operand::Kind::sink;
  if (used) s.flow = Flow::poll;
  if (m->space != Space::shared) {
    s.ordered = used || !commutes(op, m->type);
    s.waits_for_blocks = used;
  }
  return s;
}

}  // namespace assay::sim
