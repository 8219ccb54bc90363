// Kernel launches.
#include <cstdio>
#include <span>

#include "sim/counters.h"
#include "support/cuda_double/call.h"
#include "support/cuda_double/parameters.h"

namespace assay::gpu {
namespace {

// Every scheduler of a multiprocessor issues one instruction per clock; see gpus/h200.json.
constexpr double kInstructionsPerSecond = sim::kMultiprocessors * 4 * 1.98e9, kLaunchSeconds = 3e-6;
// Matrix units are slow, so that measuring them for some milliseconds takes little simulation.
constexpr double kTensorFlopsPerSecond = 5e7;

CUresult code_of(sim::LaunchStatus status) {
  switch (status) {
    case sim::LaunchStatus::ok: return kSuccess;
    case sim::LaunchStatus::invalid_configuration: return kInvalidValue;
    case sim::LaunchStatus::too_large_cooperative: return kCooperativeLaunchTooLarge;
    case sim::LaunchStatus::too_many_registers: return kLaunchOutOfResources;
    case sim::LaunchStatus::illegal_address: return kIllegalAddress;
    case sim::LaunchStatus::misaligned_address: return kMisalignedAddress;
    case sim::LaunchStatus::illegal_instruction: return kIllegalInstruction;
    case sim::LaunchStatus::assertion: return kAssert;
    case sim::LaunchStatus::timeout: return kLaunchTimeout;
  }
  return kUnknown;
}

// Whether the kernel never ran, which leaves the context unchanged.
bool was_refused(sim::LaunchStatus status) {
  return status == sim::LaunchStatus::invalid_configuration ||
         status == sim::LaunchStatus::too_large_cooperative ||
         status == sim::LaunchStatus::too_many_registers;
}

CUresult launch(SimulatedGpu& gpu, CUfunction function, const sim::LaunchConfig& config,
                CUstream stream, void** params, void** extra) {
  if (!gpu.functions.has(function) || !gpu.has_stream(stream)) return kInvalidHandle;
  const sim::KernelInfo& info = gpu.device().info(function->id);
  if (config.dynamic_shared_bytes > function->dynamic_shared_limit(info)) return kInvalidValue;
  const auto block = parameter_block(info, params, extra);
  if (!block) return kInvalidValue;
  const sim::LaunchResult result = gpu.device().launch(function->id, config, *block);
  if (was_refused(result.status)) return code_of(result.status);
  std::fwrite(result.output.data(), 1, result.output.size(), stdout);
  std::fflush(stdout);
  gpu.seconds += static_cast<double>(result.counters.instructions) / kInstructionsPerSecond +
                 kLaunchSeconds +
                 static_cast<double>(result.counters.tensor_flops) / kTensorFlopsPerSecond;
  gpu.broken = code_of(result.status);
  return kSuccess;
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void** params,
                        void** extra) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    const sim::LaunchConfig config{
        .grid = {gx, gy, gz}, .block = {bx, by, bz}, .dynamic_shared_bytes = shared};
    return launch(gpu, function, config, stream, params, extra);
  });
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   CUstream stream, void** params) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    const sim::LaunchConfig config{.grid = {gx, gy, gz},
                                   .block = {bx, by, bz},
                                   .dynamic_shared_bytes = shared,
                                   .cooperative = true};
    return launch(gpu, function, config, stream, params, nullptr);
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* given, CUfunction function, void** params,
                          void** extra) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (given == nullptr || (given->attribute_count != 0 && given->attributes == nullptr))
      return kInvalidValue;
    const unsigned(&g)[3] = given->grid, (&b)[3] = given->block;
    sim::LaunchConfig config{.grid = {g[0], g[1], g[2]},
                             .block = {b[0], b[1], b[2]},
                             .dynamic_shared_bytes = given->shared};
    for (const CUlaunchAttribute& a : std::span(given->attributes, given->attribute_count)) {
      if (a.id == kLaunchCooperative) {
        config.cooperative = a.cooperative != 0;
      } else if (a.id == kLaunchClusterDimension) {
        config.cluster = {a.cluster[0], a.cluster[1], a.cluster[2]};
      } else {
        return kInvalidValue;
      }
    }
    const bool large = config.cluster.count() > sim::kPortableClusterBlocks;
    if (large && gpu.functions.has(function) && !function->large_clusters) return kInvalidValue;
    return launch(gpu, function, config, given->stream, params, extra);
  });
}

}  // namespace assay::gpu
