#include "sim/execution/memory_path.h"

#include <fmt/format.h>

#include <bit>

#include "sim/execution/cluster_run.h"
#include "sim/execution/definedness.h"
#include "sim/memory/lane_pattern.h"

namespace assay::sim {

using ptx::Space;

namespace {

// Copies between memory and lane-major data; `zero` + address is the host address.
template <unsigned kBytes>
void gather(std::uintptr_t zero, const std::uint64_t* address, std::uint32_t mask,
            std::byte* data) {
  if (mask == ~0u) {
    if (consecutive<kBytes>(address)) {
      std::memcpy(data, reinterpret_cast<const std::byte*>(zero + address[0]), kLanes * kBytes);
      return;
    }
    for (unsigned l = 0; l < kLanes; ++l) {
      std::memcpy(data + l * kBytes, reinterpret_cast<const std::byte*>(zero + address[l]), kBytes);
    }
    return;
  }
  for (; mask != 0; mask &= mask - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(mask));
    std::memcpy(data + l * kBytes, reinterpret_cast<const std::byte*>(zero + address[l]), kBytes);
  }
}

template <unsigned kBytes>
void scatter(std::uintptr_t zero, const std::uint64_t* address, std::uint32_t mask,
             const std::byte* data) {
  if (mask == ~0u) {
    if (consecutive<kBytes>(address)) {
      std::memcpy(reinterpret_cast<std::byte*>(zero + address[0]), data, kLanes * kBytes);
      return;
    }
    for (unsigned l = 0; l < kLanes; ++l) {
      std::memcpy(reinterpret_cast<std::byte*>(zero + address[l]), data + l * kBytes, kBytes);
    }
    return;
  }
  for (; mask != 0; mask &= mask - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(mask));
    std::memcpy(reinterpret_cast<std::byte*>(zero + address[l]), data + l * kBytes, kBytes);
  }
}

WarpAccess access_of(const WarpRun& w, AccessKind kind, std::uint32_t bytes,
                     const std::uint64_t* address, std::uint32_t mask, const void* value) {
  return {kind, bytes, mask, address, value, w.pc, w.index};
}

// Stores define their bytes; loads report where theirs are undefined.
template <unsigned kBytes, bool kStore>
void follow_local(WarpRun& w, const WarpAccess& access) {
  std::uint32_t lanes = 0;
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(rest));
    if constexpr (kStore) {
      set_local_undefined(w, access.address[l], l, 0, kBytes);
    } else if (local_undefined_bytes(w, access.address[l], l, kBytes) != 0) {
      lanes |= 1u << l;
    }
  }
  if (lanes != 0) note_undefined(w, access, lanes, false);
}

// Local memory: offsets are aligned, so an element of up to 4 bytes lies within one word.
template <unsigned kBytes, bool kStore, class Byte>
void local_access(WarpRun& w, const WarpAccess& access, Byte* data) {
  if (!w.block->checker.local(access, w.local_bytes)) fail_recorded(w);
  if (!w.local_undefined.empty()) follow_local<kBytes, kStore>(w, access);
  constexpr unsigned kPart = kBytes < 4 ? kBytes : 4;
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(rest));
    for (unsigned at = 0; at < kBytes; at += kPart) {
      std::byte* const word = local_word(w, access.address[l] + at, l);
      if constexpr (kStore) {
        std::memcpy(word, data + l * kBytes + at, kPart);
      } else {
        std::memcpy(data + l * kBytes + at, word, kPart);
      }
    }
  }
}

// Constants are read-only, so neither races nor uninitialised bytes are possible.
template <unsigned kBytes>
void load_constant(WarpRun& w, const std::uint64_t* address, std::uint32_t mask, std::byte* data) {
  count_constant(*w.block->counters,
                 access_of(w, AccessKind::load, kBytes, address, mask, nullptr));
  const std::byte* host = nullptr;
  std::uint64_t last = 0;
  for (; mask != 0; mask &= mask - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(mask));
    if (host == nullptr || address[l] != last) {
      last = address[l];
      host = w.block->grid->memory->data(last, kBytes);
      if (last % kBytes != 0) {
        fail(w, FindingKind::misaligned, l,
             fmt::format("reads {} bytes of constant memory at {:#x}, which is not aligned", kBytes,
                         last));
      }
      if (host == nullptr) {
        fail(w, FindingKind::out_of_bounds, l,
             fmt::format("reads {} bytes at {:#x}, outside of every constant", kBytes, last));
      }
    }
    std::memcpy(data + l * kBytes, host, kBytes);
  }
}

template <unsigned kBytes>
void load_param(WarpRun& w, const std::uint64_t* address, std::uint32_t mask, std::byte* data) {
  const auto& params = w.block->grid->params;
  for_addresses(access_of(w, AccessKind::load, kBytes, address, mask, nullptr),
                [&](std::uint32_t, std::uint64_t) { ++w.block->counters->total[Unit::constant]; });
  for (; mask != 0; mask &= mask - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(mask));
    if (address[l] > params.size() || params.size() - address[l] < kBytes) {
      fail(w, FindingKind::out_of_bounds, l,
           fmt::format("reads {} bytes at {} of {} bytes of kernel parameters", kBytes, address[l],
                       params.size()));
    }
    std::memcpy(data + l * kBytes, params.data() + address[l], kBytes);
  }
}

// Notes that what the lanes read is undefined if nothing had written it.
inline void see_undefined(WarpRun& w, const WarpAccess& access, bool shared) {
  std::uint32_t& lanes = w.block->checker.undefined;
  if (lanes == 0) [[likely]]
    return;
  note_undefined(w, access, lanes, shared);
  lanes = 0;
}

// Shared memory that some lane names by the rank of its block in the cluster.
template <unsigned kBytes>
void load_of_cluster(WarpRun& w, const std::uint64_t* address, std::uint32_t mask, AccessKind kind,
                     std::byte* data) {
  for_each_owner(w, address, mask, [&](BlockRun& owner, const std::uint64_t* a, std::uint32_t m) {
    if (&owner == w.block) return load_lanes<kBytes>(w, Space::shared, a, m, kind, data);
    const WarpAccess access = access_of(w, kind, kBytes, a, m, nullptr);
    if (!w.block->checker.shared_of(owner.checker, access)) fail_recorded(w);
    see_undefined(w, access, true);
    gather<kBytes>(reinterpret_cast<std::uintptr_t>(owner.shared.data()), a, m, data);
  });
}

template <unsigned kBytes>
void store_of_cluster(WarpRun& w, const std::uint64_t* address, std::uint32_t mask, AccessKind kind,
                      const std::byte* data) {
  for_each_owner(w, address, mask, [&](BlockRun& owner, const std::uint64_t* a, std::uint32_t m) {
    if (&owner == w.block) return store_lanes<kBytes>(w, Space::shared, a, m, kind, data);
    if (!w.block->checker.shared_of(owner.checker, access_of(w, kind, kBytes, a, m, data)))
      fail_recorded(w);
    scatter<kBytes>(reinterpret_cast<std::uintptr_t>(owner.shared.data()), a, m, data);
  });
}

// The checker of the block whose shared memory the offset names, which becomes one in it.
BlockChecker& checker_of(WarpRun& w, std::uint64_t& offset) {
  BlockRun* const owner =
      w.block->cluster == nullptr ? w.block : w.block->cluster->owner(*w.block, offset);
  return owner->checker;
}

// Loads the mask of undefined bits in place of the data.
template <unsigned kBytes>
void load_undefined(WarpRun& w, Space space, const std::uint64_t* address, std::uint32_t mask,
                    std::byte* data) {
  if (space == Space::generic) {
    return for_each_space(address, mask, [&](Space s, const std::uint64_t* a, std::uint32_t m) {
      load_undefined<kBytes>(w, s, a, m, data);
    });
  }
  for (; mask != 0; mask &= mask - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(mask));
    std::uint32_t bits = 0;
    std::uint64_t at = address[l];
    if (space == Space::global) {
      bits = w.block->checker.undefined_bytes(false, at, kBytes);
    } else if (space == Space::shared) {
      BlockChecker& owner = checker_of(w, at);
      bits = owner.undefined_bytes(true, at, kBytes);
    } else if (space == Space::local) {
      bits = local_undefined_bytes(w, address[l], l, kBytes);
    }
    for (unsigned b = 0; b < kBytes; ++b) {
      data[l * kBytes + b] = ((bits >> b) & 1u) != 0 ? std::byte{0xff} : std::byte{0};
    }
  }
}

// Stores that mask, after the data has been stored.
template <unsigned kBytes>
void store_undefined(WarpRun& w, Space space, const std::uint64_t* address, std::uint32_t mask,
                     AccessKind kind, const std::byte* data) {
  if (space == Space::generic) {
    return for_each_space(address, mask, [&](Space s, const std::uint64_t* a, std::uint32_t m) {
      store_undefined<kBytes>(w, s, a, m, kind, data);
    });
  }
  const WarpAccess access = access_of(w, kind, kBytes, address, mask, nullptr);
  for (; mask != 0; mask &= mask - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(mask));
    std::uint32_t bits = 0;
    for (unsigned b = 0; b < kBytes; ++b) {
      bits |= (data[l * kBytes + b] != std::byte{0} ? 1u : 0u) << b;
    }
    if (bits == 0) continue;
    if (space == Space::local) {
      set_local_undefined(w, address[l], l, bits, kBytes);
    } else if (space == Space::shared) {
      Lanes64 at;
      at.v[l] = address[l];
      BlockChecker& owner = checker_of(w, at.v[l]);
      owner.store_undefined(true, access_of(w, kind, kBytes, at.v, 1u << l, nullptr), l, bits);
    } else {
      w.block->checker.store_undefined(false, access, l, bits);
    }
  }
}

}  // namespace

template <unsigned kBytes>
void load_lanes(WarpRun& w, Space space, const std::uint64_t* address, std::uint32_t mask,
                AccessKind kind, std::byte* data) {
  if (w.replaying) [[unlikely]]
    return load_undefined<kBytes>(w, space, address, mask, data);
  const WarpAccess access = access_of(w, kind, kBytes, address, mask, nullptr);
  switch (space) {
    case Space::global:
      if (!w.block->checker.global(access)) fail_recorded(w);
      see_undefined(w, access, false);
      return gather<kBytes>(w.block->global_zero, address, mask, data);
    case Space::shared:
      if (names_cluster(w, address, mask))
        return load_of_cluster<kBytes>(w, address, mask, kind, data);
      if (!w.block->checker.shared(access)) fail_recorded(w);
      see_undefined(w, access, true);
      return gather<kBytes>(reinterpret_cast<std::uintptr_t>(w.block->shared.data()), address, mask,
                            data);
    case Space::local: return local_access<kBytes, false>(w, access, data);
    case Space::constant: return load_constant<kBytes>(w, address, mask, data);
    case Space::param: return load_param<kBytes>(w, address, mask, data);
    default:
      for_each_space(address, mask, [&](Space s, const std::uint64_t* a, std::uint32_t m) {
        load_lanes<kBytes>(w, s, a, m, kind, data);
      });
  }
}

template <unsigned kBytes>
void store_lanes(WarpRun& w, Space space, const std::uint64_t* address, std::uint32_t mask,
                 AccessKind kind, const std::byte* data) {
  if (w.replaying) [[unlikely]] {
    return store_undefined<kBytes>(w, space, address, mask, kind, data);
  }
  const WarpAccess access = access_of(w, kind, kBytes, address, mask, data);
  switch (space) {
    case Space::global:
      if (!w.block->checker.global(access)) fail_recorded(w);
      return scatter<kBytes>(w.block->global_zero, address, mask, data);
    case Space::shared:
      if (names_cluster(w, address, mask))
        return store_of_cluster<kBytes>(w, address, mask, kind, data);
      if (!w.block->checker.shared(access)) fail_recorded(w);
      return scatter<kBytes>(reinterpret_cast<std::uintptr_t>(w.block->shared.data()), address,
                             mask, data);
    case Space::local: return local_access<kBytes, true>(w, access, data);
    case Space::generic:
      return for_each_space(address, mask, [&](Space s, const std::uint64_t* a, std::uint32_t m) {
        store_lanes<kBytes>(w, s, a, m, kind, data);
      });
    default:
      fail(w, FindingKind::read_only, static_cast<unsigned>(std::countr_zero(mask)),
           "writes to a kernel parameter");
  }
}

#define ASSAY_INSTANTIATE(n)                                                                     \
  template void load_lanes<n>(WarpRun&, Space, const std::uint64_t*, std::uint32_t, AccessKind,  \
                              std::byte*);                                                       \
  template void store_lanes<n>(WarpRun&, Space, const std::uint64_t*, std::uint32_t, AccessKind, \
                               const std::byte*);
ASSAY_INSTANTIATE(1)
ASSAY_INSTANTIATE(2)
ASSAY_INSTANTIATE(4)
ASSAY_INSTANTIATE(8)
ASSAY_INSTANTIATE(16)
ASSAY_INSTANTIATE(32)
#undef ASSAY_INSTANTIATE

const std::byte* load_uniform(WarpRun& w, Space space, const std::uint64_t* address,
                              std::uint32_t bytes, AccessKind kind) {
  const WarpAccess access = access_of(w, kind, bytes, address, w.active, nullptr);
  if (space == Space::shared) {
    if (names_cluster(w, address, 1)) return nullptr;
    if (!w.block->checker.shared(access)) fail_recorded(w);
    see_undefined(w, access, true);
    return w.block->shared.data() + address[0];
  }
  if (space != Space::global) return nullptr;
  if (!w.block->checker.global(access)) fail_recorded(w);
  see_undefined(w, access, false);
  return reinterpret_cast<const std::byte*>(w.block->global_zero + address[0]);
}

void order_volatile(WarpRun& w, const std::uint64_t* address, std::uint32_t bytes,
                    AccessKind kind) {
  if (names_cluster(w, address, w.active)) return w.block->checker.cluster_ordered_otherwise();
  w.block->checker.volatile_shared(access_of(w, kind, bytes, address, w.active, nullptr));
}

void locate_atomic(WarpRun& w, Space space, const std::uint64_t* address, std::uint32_t mask,
                   AccessKind kind, std::uint32_t bytes, std::byte** host) {
  if (space == Space::generic) {
    return for_each_space(address, mask, [&](Space s, const std::uint64_t* a, std::uint32_t m) {
      locate_atomic(w, s, a, m, kind, bytes, host);
    });
  }
  if (space == Space::shared && names_cluster(w, address, mask)) {
    return for_each_owner(
        w, address, mask, [&](BlockRun& owner, const std::uint64_t* a, std::uint32_t m) {
          if (&owner == w.block) return locate_atomic(w, space, a, m, kind, bytes, host);
          const WarpAccess access = access_of(w, kind, bytes, a, m, nullptr);
          if (!w.block->checker.shared_of(owner.checker, access)) fail_recorded(w);
          see_undefined(w, access, true);
          for_lanes(m, [&](std::uint32_t l) { host[l] = owner.shared.data() + a[l]; });
        });
  }
  const WarpAccess access = access_of(w, kind, bytes, address, mask, nullptr);
  BlockChecker& checker = w.block->checker;
  std::uintptr_t zero = 0;
  if (space == Space::shared) {
    if (!checker.shared(access)) fail_recorded(w);
    see_undefined(w, access, true);
    zero = reinterpret_cast<std::uintptr_t>(w.block->shared.data());
  } else if (space == Space::global) {
    if (!checker.global(access)) fail_recorded(w);
    see_undefined(w, access, false);
    zero = w.block->global_zero;
  } else {
    fail(w, FindingKind::trap, static_cast<unsigned>(std::countr_zero(mask)),
         "an atomic operation on local memory or a parameter");
  }
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(rest));
    host[l] = reinterpret_cast<std::byte*>(zero + address[l]);
  }
}

void fail_recorded(Warp& w) {
  throw LaunchFailure{true, FindingKind::out_of_bounds, w.block->index, w.index * kWarpSize, w.pc,
                      {}};
}

}  // namespace assay::sim
