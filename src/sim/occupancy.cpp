#include "sim/occupancy.h"

#include <algorithm>
#include <utility>

namespace assay::sim {
namespace {

constexpr std::uint32_t kSharedUnit = 128;  // allocation unit of a block, in bytes

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

constexpr std::uint32_t warps_of(std::uint64_t threads) {
  return static_cast<std::uint32_t>(round_up(threads, kWarpSize) / kWarpSize);
}

bool can_launch(const KernelInfo& info, std::uint64_t threads, std::uint64_t dynamic_shared_bytes) {
  return threads > 0 && threads <= info.max_threads &&
         info.static_shared_bytes + dynamic_shared_bytes <= kMaxSharedOptin;
}

std::uint32_t blocks_by_threads(std::uint64_t threads) {
  return kMaxResidentThreads / (warps_of(threads) * kWarpSize);
}

std::uint32_t blocks_by_shared(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(kSharedPerMultiprocessor /
                                    round_up(bytes + kReservedSharedPerBlock, kSharedUnit));
}

}  // namespace

std::uint32_t registers_per_thread(const KernelInfo& info) {
  const std::uint32_t warps = round_up(warps_of(info.max_threads), kSubPartitions) / kSubPartitions;
  const std::uint32_t per_warp = kRegistersPerMultiprocessor / kSubPartitions /
                                 std::max(warps, 1u) / kRegisterUnit * kRegisterUnit;
  const std::uint32_t most = std::min(per_warp / kWarpSize, kMaxRegistersPerThread);
  return std::clamp(info.registers, 1u, most);
}

std::uint32_t blocks_per_multiprocessor(const KernelInfo& info, std::uint64_t threads,
                                        std::uint64_t dynamic_shared_bytes) {
  if (!can_launch(info, threads, dynamic_shared_bytes)) return 0;
  return std::min({kMaxResidentBlocks, blocks_by_threads(threads),
                   blocks_by_shared(info.static_shared_bytes + dynamic_shared_bytes)});
}

// A warp's registers lie in one sub-partition, and a block's warps are dealt to the sub-partitions
// in turn: see cudaOccMaxBlocksPerSMRegsLimit in the toolkit's cuda_occupancy.h.
std::uint32_t blocks_by_registers(std::uint32_t registers, std::uint64_t threads) {
  if (threads == 0 || threads > kMaxThreadsPerBlock) return 0;
  const std::uint64_t of_warp =
      round_up(std::uint64_t{std::max(registers, 1u)} * kWarpSize, kRegisterUnit);
  const std::uint64_t in_partition = kRegistersPerMultiprocessor / kSubPartitions / of_warp;
  return static_cast<std::uint32_t>(in_partition * kSubPartitions / warps_of(threads));
}

const char* to_string(ResidencyLimit limit) {
  switch (limit) {
    case ResidencyLimit::threads: return "threads";
    case ResidencyLimit::blocks: return "blocks";
    case ResidencyLimit::shared_memory: return "shared memory";
    case ResidencyLimit::registers: return "registers";
  }
  return "unknown";
}

Residency residency_of(const KernelInfo& info, std::uint32_t threads,
                       std::uint64_t dynamic_shared_bytes) {
  if (!can_launch(info, threads, dynamic_shared_bytes)) return {};
  const std::pair<std::uint32_t, ResidencyLimit> bounds[] = {
      {blocks_by_threads(threads), ResidencyLimit::threads},
      {kMaxResidentBlocks, ResidencyLimit::blocks},
      {blocks_by_shared(info.static_shared_bytes + dynamic_shared_bytes),
       ResidencyLimit::shared_memory},
      {blocks_by_registers(registers_per_thread(info), threads), ResidencyLimit::registers}};
  const auto& [blocks, limit] =
      *std::ranges::min_element(bounds, {}, [](const auto& bound) { return bound.first; });
  return {blocks * warps_of(threads), limit};
}

// 132 multiprocessors, of up to 18 in each of 8 groups; which are left out differs between chips
// ("NVIDIA H100 Tensor Core GPU Architecture", whitepaper).
std::uint64_t resident_clusters(std::uint64_t blocks, std::uint64_t size) {
  constexpr std::uint64_t kGroups[] = {18, 18, 16, 16, 16, 16, 16, 16};
  std::uint64_t clusters = 0;
  for (const std::uint64_t multiprocessors : kGroups) clusters += multiprocessors * blocks / size;
  return clusters;
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
