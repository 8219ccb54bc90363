#include "sim/runtime/occupancy.h"

#include <algorithm>

namespace assay::sim {
namespace {

constexpr std::uint32_t kSharedUnit = 128;  // allocation unit of a block, in bytes

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

constexpr std::uint32_t warps_of(std::uint32_t threads) {
  return static_cast<std::uint32_t>(round_up(threads, kWarpSize) / kWarpSize);
}

}  // namespace

std::uint32_t registers_per_thread(const KernelInfo& info) {
  const std::uint32_t warps = round_up(warps_of(info.max_threads), kSubPartitions) / kSubPartitions;
  const std::uint32_t per_warp = kRegistersPerMultiprocessor / kSubPartitions /
                                 std::max(warps, 1u) / kRegisterUnit * kRegisterUnit;
  const std::uint32_t most = std::min(per_warp / kWarpSize, kMaxRegistersPerThread);
  return std::clamp(info.registers, 1u, most);
}

std::uint32_t blocks_per_multiprocessor(const KernelInfo& info, std::uint32_t threads,
                                        std::uint64_t dynamic_shared_bytes) {
  const std::uint64_t shared = info.static_shared_bytes + dynamic_shared_bytes;
  if (threads == 0 || threads > info.max_threads || shared > kMaxSharedOptin) return 0;
  const std::uint32_t warps = warps_of(threads);
  const std::uint32_t by_threads = kMaxResidentThreads / (warps * kWarpSize);
  const auto by_shared = static_cast<std::uint32_t>(
      kSharedPerMultiprocessor / round_up(shared + kReservedSharedPerBlock, kSharedUnit));
  return std::min({kMaxResidentBlocks, by_threads, by_shared});
}

std::uint64_t dynamic_shared_for(const KernelInfo& info, std::uint32_t blocks) {
  if (blocks == 0) return 0;
  const std::uint64_t share = kSharedPerMultiprocessor / blocks / kSharedUnit * kSharedUnit;
  const std::uint64_t taken = kReservedSharedPerBlock + info.static_shared_bytes;
  const std::uint64_t left = share > taken ? share - taken : 0;
  const std::uint64_t most = kMaxSharedOptin - std::min(kMaxSharedOptin, info.static_shared_bytes);
  return std::min(left, most);
}

}  // namespace assay::sim
