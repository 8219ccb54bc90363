// ld, ldu and st in every space except the .param rows of calls (param_ops.cpp), and instructions
// that are only cache hints.
#include <array>
#include <type_traits>

#include "sim/execution/memory_path.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/lane_ops.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {

using ptx::Space;
using ptx::Type;

namespace {

AccessKind load_kind(const MemoryFlags& f) {
  return f.atomic ? AccessKind::atomic_load : AccessKind::load;
}
AccessKind store_kind(const MemoryFlags& f) {
  return f.atomic ? AccessKind::atomic_store : AccessKind::store;
}

void extend(const MemoryFlags& f, std::uint32_t* value) {
  if (f.extend_from == 0) return;
  const unsigned up = 32u - f.extend_from;
  const std::uint32_t keep = f.extend_to >= 32 ? ~0u : (1u << f.extend_to) - 1;
  for (unsigned l = 0; l < kLanes; ++l) {
    value[l] = static_cast<std::uint32_t>(static_cast<std::int32_t>(value[l] << up) >> up) & keep;
  }
}

template <unsigned kBytes>
struct Element;
template <>
struct Element<1> {
  using type = std::uint8_t;
};
template <>
struct Element<2> {
  using type = std::uint16_t;
};
template <>
struct Element<4> {
  using type = std::uint32_t;
};
template <>
struct Element<8> {
  using type = std::uint64_t;
};

// Moves lane-major data to the slots of a vector's elements. All elements of a lane are moved
// together, because compilers only vectorise loops that read their input without gaps.
template <unsigned kBytes, unsigned kVector>
void unpack(Warp& w, const MemoryFlags& f, const std::byte* data, const std::uint32_t* slots) {
  using T = typename Element<kBytes>::type;
  const auto* in = reinterpret_cast<const T*>(data);
  alignas(64) std::conditional_t<kBytes == 8, std::uint64_t, std::uint32_t> value[kVector][kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    for (unsigned v = 0; v < kVector; ++v) value[v][l] = in[l * kVector + v];
  }
  for (unsigned v = 0; v < kVector; ++v) {
    if constexpr (kBytes == 8) {
      each64(w, slots[v], [&](unsigned l) { return value[v][l]; });
    } else {
      if constexpr (kBytes < 4) extend(f, value[v]);
      put32(w, slots[v], value[v]);
    }
  }
}

// Copies one element to every lane.
template <unsigned kBytes>
void broadcast(Warp& w, const MemoryFlags& f, const std::byte* from, std::uint32_t slot) {
  typename Element<kBytes>::type element;
  std::memcpy(&element, from, kBytes);
  if constexpr (kBytes == 8) {
    each64(w, slot, [&](unsigned) { return element; });
  } else if constexpr (kBytes == 4) {
    each32(w, slot, [&](unsigned) { return element; });
  } else {
    alignas(64) std::uint32_t value[kLanes];
    for (std::uint32_t& x : value) x = element;
    extend(f, value);
    put32(w, slot, value);
  }
}

template <unsigned kBytes, unsigned kVector>
void pack(Warp& w, std::byte* data, unsigned v, std::uint32_t slot) {
  using T = typename Element<kBytes>::type;
  auto* out = reinterpret_cast<T*>(data);
  if constexpr (kBytes == 8) {
    for (unsigned l = 0; l < kLanes; ++l) out[l * kVector + v] = w.r64(slot).v[l];
  } else {
    for (unsigned l = 0; l < kLanes; ++l) out[l * kVector + v] = static_cast<T>(w.r32(slot).v[l]);
  }
}

// All lanes at the same offset of local memory, as in spills and uniformly indexed arrays: the
// lanes' words are then adjacent, and nothing has to be rearranged.
template <unsigned kBytes, unsigned kVector>
bool uniform_local(WarpRun& w, const Lanes64& address, std::uint64_t& offset) {
  const auto first = static_cast<unsigned>(std::countr_zero(w.active)) % kLanes;
  offset = address.v[first];
  std::uint64_t differ = 0;
  if (w.full()) {
    for (unsigned l = 0; l < kLanes; ++l) differ |= address.v[l] ^ offset;
  } else {
    for (unsigned l = 0; l < kLanes; ++l) differ |= (address.v[l] ^ offset) & wide_mask(w, l);
  }
  constexpr unsigned kTotal = kBytes * kVector;
  return differ == 0 && offset % kTotal == 0 && offset + kTotal <= w.local_bytes;
}

template <unsigned kBytes, unsigned kVector>
bool load_local(WarpRun& w, const Instr& in, const Lanes64& address, const std::uint32_t* slots) {
  std::uint64_t offset = 0;
  if (!uniform_local<kBytes, kVector>(w, address, offset)) return false;
  w.block->counters->local_load_bytes +=
      std::uint64_t{kBytes * kVector} * static_cast<unsigned>(std::popcount(w.active));
  w.block->counters->local_sectors += local_sectors(w.active, kBytes * kVector);
  for (unsigned v = 0; v < kVector; ++v) {
    const std::uint64_t at = offset + v * kBytes;
    const auto* row = reinterpret_cast<const std::uint32_t*>(local_word(w, at / 4 * 4, 0));
    if constexpr (kBytes == 8) {
      each64(w, slots[v],
             [&](unsigned l) { return row[l] | (std::uint64_t{row[kLanes + l]} << 32); });
    } else if constexpr (kBytes == 4) {
      put32(w, slots[v], row);
    } else {
      alignas(64) std::uint32_t value[kLanes];
      const auto shift = static_cast<unsigned>(8 * (at % 4));
      for (unsigned l = 0; l < kLanes; ++l) {
        value[l] = (row[l] >> shift) & ((1u << (8 * kBytes)) - 1);
      }
      extend(MemoryFlags::decode(in.e), value);
      put32(w, slots[v], value);
    }
  }
  return true;
}

template <unsigned kBytes, unsigned kVector>
bool store_local(WarpRun& w, const Lanes64& address, const std::uint32_t* slots) {
  std::uint64_t offset = 0;
  if (!uniform_local<kBytes, kVector>(w, address, offset)) return false;
  w.block->counters->local_store_bytes +=
      std::uint64_t{kBytes * kVector} * static_cast<unsigned>(std::popcount(w.active));
  w.block->counters->local_sectors += local_sectors(w.active, kBytes * kVector);
  for (unsigned v = 0; v < kVector; ++v) {
    const std::uint64_t at = offset + v * kBytes;
    auto* row = reinterpret_cast<std::uint32_t*>(local_word(w, at / 4 * 4, 0));
    const auto blend = [&](std::uint32_t* to, unsigned l, std::uint32_t value, std::uint32_t bits) {
      const std::uint32_t take = w.lane_mask.v[l] & bits;
      to[l] = (value & take) | (to[l] & ~take);
    };
    if constexpr (kBytes == 8) {
      const Lanes64& s = w.r64(slots[v]);
      for (unsigned l = 0; l < kLanes; ++l) blend(row, l, static_cast<std::uint32_t>(s.v[l]), ~0u);
      for (unsigned l = 0; l < kLanes; ++l) {
        blend(row + kLanes, l, static_cast<std::uint32_t>(s.v[l] >> 32), ~0u);
      }
    } else {
      const Lanes32& s = w.r32(slots[v]);
      const auto shift = static_cast<unsigned>(8 * (at % 4));
      const std::uint32_t bits = kBytes == 4 ? ~0u : ((1u << (8 * kBytes % 32)) - 1) << shift;
      for (unsigned l = 0; l < kLanes; ++l) blend(row, l, s.v[l] << shift, bits);
    }
  }
  return true;
}

// Whether undefined bytes of local memory matter now.
bool follows_local(const WarpRun& w) { return w.replaying || !w.local_undefined.empty(); }

// A plain load of shared memory by a full warp from one address, as for tiles that all threads
// traverse alike. False: must be done lane by lane.
template <unsigned kBytes, unsigned kVector>
bool load_shared_uniform(WarpRun& w, const Instr& in, const MemoryFlags& f, std::uint32_t base,
                         const std::uint32_t* slots) {
  if (!f.narrow_address || f.atomic || f.is_volatile || !w.full()) return false;
  const Lanes32& a = w.r32(base);
  if (!uniform(a.v)) return false;
  const std::uint32_t offset = a.v[0] + static_cast<std::uint32_t>(in.imm);
  if (!w.block->checker.load_shared_uniform(w.index, w.pc, offset, kBytes * kVector)) return false;
  const std::byte* from = w.block->shared.data() + offset;
  for (unsigned v = 0; v < kVector; ++v) broadcast<kBytes>(w, f, from + v * kBytes, slots[v]);
  return true;
}

// A vector's slots are in extra: before the address's slot for loads, after it for stores.
template <unsigned kBytes, unsigned kVector>
void load(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const MemoryFlags f = MemoryFlags::decode(in.e);
  const std::uint32_t* slots = kVector == 1 ? &in.d : w.extra + in.aux;
  const std::uint32_t base = kVector == 1 ? in.a : slots[kVector];
  if (f.space == Space::shared && !w.replaying &&
      load_shared_uniform<kBytes, kVector>(w, in, f, base, slots)) {
    return;
  }
  Lanes64 address;
  lane_addresses(w, base, in.imm, f.narrow_address, address);
  if (f.space == Space::local && !follows_local(w) &&
      load_local<kBytes, kVector>(w, in, address, slots)) {
    return;
  }
  if (f.is_volatile && !w.replaying)
    order_volatile(w, address.v, kBytes * kVector, AccessKind::load);
  alignas(64) std::byte data[kLanes * kBytes * kVector];
  if (w.full() && !w.replaying && uniform(address.v)) {
    const std::byte* one = load_uniform(w, f.space, address.v, kBytes * kVector, load_kind(f));
    if (one != nullptr) {
      for (unsigned v = 0; v < kVector; ++v) broadcast<kBytes>(w, f, one + v * kBytes, slots[v]);
      return;
    }
  }
  if (kVector == 1 && kBytes >= 4 && w.full()) {
    load_lanes<kBytes>(w, f.space, address.v, w.active, load_kind(f), w.regs + in.d);
    return;
  }
  load_lanes<kBytes * kVector>(w, f.space, address.v, w.active, load_kind(f), data);
  unpack<kBytes, kVector>(w, f, data, slots);
}

template <unsigned kBytes, unsigned kVector>
void store(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const MemoryFlags f = MemoryFlags::decode(in.e);
  const std::uint32_t* slots = kVector == 1 ? &in.b : w.extra + in.aux + 1;
  Lanes64 address;
  lane_addresses(w, kVector == 1 ? in.a : slots[-1], in.imm, f.narrow_address, address);
  if (!w.replaying) {
    if (f.releases) w.block->checker.fence();
    if (f.releases_block) w.block->checker.fence_block(w.index);
    if (f.is_volatile) order_volatile(w, address.v, kBytes * kVector, AccessKind::store);
  }
  if (f.space == Space::local && !follows_local(w) &&
      store_local<kBytes, kVector>(w, address, slots)) {
    return;
  }
  if constexpr (kVector == 1 && kBytes >= 4) {
    store_lanes<kBytes>(w, f.space, address.v, w.active, store_kind(f), w.regs + in.b);
  } else {
    alignas(64) std::byte data[kLanes * kBytes * kVector];
    for (unsigned v = 0; v < kVector; ++v) pack<kBytes, kVector>(w, data, v, slots[v]);
    store_lanes<kBytes * kVector>(w, f.space, address.v, w.active, store_kind(f), data);
  }
}

// b128: two adjacent Lanes64.
void load128(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const MemoryFlags f = MemoryFlags::decode(in.e);
  Lanes64 address;
  lane_addresses(w, in.a, in.imm, f.narrow_address, address);
  alignas(64) std::uint64_t data[2 * kLanes];
  load_lanes<16>(w, f.space, address.v, w.active, load_kind(f), reinterpret_cast<std::byte*>(data));
  for (unsigned half = 0; half < 2; ++half) {
    each64(w, in.d + half * sizeof(Lanes64), [&](unsigned l) { return data[2 * l + half]; });
  }
}

void store128(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const MemoryFlags f = MemoryFlags::decode(in.e);
  Lanes64 address;
  lane_addresses(w, in.a, in.imm, f.narrow_address, address);
  alignas(64) std::uint64_t data[2 * kLanes];
  for (unsigned half = 0; half < 2; ++half) {
    const Lanes64& s = w.r64(in.b + half * sizeof(Lanes64));
    for (unsigned l = 0; l < kLanes; ++l) data[2 * l + half] = s.v[l];
  }
  store_lanes<16>(w, f.space, address.v, w.active, store_kind(f),
                  reinterpret_cast<const std::byte*>(data));
}

using Table = std::array<std::array<Handler, 4>, 4>;  // [log2 bytes][log2 vector]

constexpr Table kLoads{{{load<1, 1>, load<1, 2>, load<1, 4>, load<1, 8>},
                        {load<2, 1>, load<2, 2>, load<2, 4>, load<2, 8>},
                        {load<4, 1>, load<4, 2>, load<4, 4>, load<4, 8>},
                        {load<8, 1>, load<8, 2>, load<8, 4>, nullptr}}};
constexpr Table kStores{{{store<1, 1>, store<1, 2>, store<1, 4>, store<1, 8>},
                         {store<2, 1>, store<2, 2>, store<2, 4>, store<2, 8>},
                         {store<4, 1>, store<4, 2>, store<4, 4>, store<4, 8>},
                         {store<8, 1>, store<8, 2>, store<8, 4>, nullptr}}};

Handler handler_of(const Table& table, std::size_t bytes, unsigned vector) {
  return table[static_cast<std::size_t>(std::countr_zero(bytes))]
              [static_cast<std::size_t>(std::countr_zero(vector))];
}

OperandForm form_of(Type t, unsigned vector, bool written) {
  const std::size_t bytes = ptx::size_of(t);
  if (bytes == 16) return written ? OperandForm::dst128 : OperandForm::src128;
  if (bytes == 8) {
    return vector > 1 ? (written ? OperandForm::dst64_list : OperandForm::src64_list)
                      : (written ? OperandForm::dst64 : OperandForm::src64);
  }
  return vector > 1 ? (written ? OperandForm::dst32_list : OperandForm::src32_list)
                    : (written ? OperandForm::dst32 : OperandForm::src32);
}

// The register for the first element of a load.
Type destination_type(const ptx::Operand& o, const Names& names) {
  if (o.kind == ptx::Operand::Kind::reg) return names.register_type(o.name);
  for (const ptx::Operand& e : o.elements) {
    if (e.kind == ptx::Operand::Kind::reg) return names.register_type(e.name);
  }
  return Type::none;
}

bool is_vector_of(const ptx::Operand& o, unsigned n) {
  return n == 1 ? o.kind != ptx::Operand::Kind::vector
                : o.kind == ptx::Operand::Kind::vector && o.elements.size() == n;
}

}  // namespace

bool narrow_base(const ptx::Operand& o, const Names& names) {
  return o.kind == ptx::Operand::Kind::address && !o.elements.empty() &&
         o.elements[0].kind == ptx::Operand::Kind::reg &&
         bits_of(names.register_type(o.elements[0].name)) == 32;
}

std::optional<FlowSelection> select_memory(const ptx::Instruction& in, const Names& names) {
  const bool loads = in.opcode == "ld" || in.opcode == "ldu";
  if (!loads && in.opcode != "st") return std::nullopt;
  const auto m = memory_modifiers(in);
  if (!m || in.operands.size() != (m->cache_policy ? 3u : 2u)) throw_unsupported(in);
  const std::size_t bytes = ptx::size_of(m->type);
  const ptx::Operand& value = in.operands[loads ? 0 : 1];
  const ptx::Operand& address = in.operands[loads ? 1 : 0];
  if (bytes == 0 || bytes * m->vector > 32 || !is_vector_of(value, m->vector))
    throw_unsupported(in);
  if (bytes == 16 && m->vector > 1) throw_unsupported(in);

  MemoryFlags flags;
  flags.space = m->space;
  flags.narrow_address = narrow_base(address, names);
  const bool beyond_warp =
      m->space == Space::global || m->space == Space::generic || m->space == Space::shared;
  // In shared memory, volatile does not make an access atomic; otherwise races in code that relies
  // on lockstep execution would be missed: lanes of a warp need __syncwarp() since sm_70. Between
  // warps, volatile accesses may be accesses of a flag; describe.h excuses findings about the flag
  // itself.
  flags.atomic = (m->ordered && beyond_warp) ||
                 (m->is_volatile && (m->space == Space::global || m->space == Space::generic));
  flags.releases = !loads && m->releases && m->beyond_block && m->space != Space::shared;
  flags.releases_block = !loads && m->releases;
  flags.is_volatile = m->is_volatile && m->space == Space::shared;
  FlowSelection s;
  if (loads && is_signed(m->type) && bytes < 4) {
    const unsigned to = bits_of(destination_type(value, names));
    flags.extend_from = static_cast<std::uint8_t>(8 * bytes);
    flags.extend_to = static_cast<std::uint8_t>(to == 0 || to > 32 ? 32 : to);
  }
  s.cls = InstrClass::memory;
  s.e = flags.encode();
  const OperandForm value_form = form_of(m->type, m->vector, loads);
  const OperandForm base_form = address_form(flags.narrow_address);
  if (loads) {
    s.run = bytes == 16 ? load128 : handler_of(kLoads, bytes, m->vector);
    s.operands = {value_form, base_form};
    if (beyond_warp && (m->ordered || m->is_volatile || m->uncached)) {
      s.flow = Flow::poll;
      s.ordered = s.waits_for_blocks = m->space != Space::shared && m->beyond_block;
    }
  } else {
    s.run = bytes == 16 ? store128 : handler_of(kStores, bytes, m->vector);
    s.operands = {base_form, value_form};
    s.ordered = flags.atomic && m->space != Space::shared;
  }
  if (m->cache_policy) s.operands.push_back(OperandForm::ignored);
  return s;
}

}  // namespace assay::sim
