// Copies and fills.
#include <span>

#include "support/cuda_double/call.h"

namespace assay::gpu {
namespace {

constexpr double kDeviceBytesPerSecond = 4.8e12, kHostBytesPerSecond = 64e9;  // gpus/h200.json

// If `moved`, advances the time by what moving that many bytes takes.
CUresult finish(SimulatedGpu& gpu, bool moved, std::size_t bytes, double bytes_per_second) {
  if (!moved) return kInvalidValue;
  gpu.seconds += static_cast<double>(bytes) / bytes_per_second;
  return kSuccess;
}

}  // namespace

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                              CUstream stream) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (!gpu.has_stream(stream)) return kInvalidHandle;
    if (bytes == 0) return kSuccess;
    const std::span source(static_cast<const std::byte*>(from), bytes);
    const bool moved = from != nullptr && gpu.addresses.permits({to, bytes}, true) &&
                       gpu.device().write(to, source);
    return finish(gpu, moved, bytes, kHostBytesPerSecond);
  });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (!gpu.has_stream(stream)) return kInvalidHandle;
    if (bytes == 0) return kSuccess;
    const std::span target(static_cast<std::byte*>(to), bytes);
    const bool moved = to != nullptr && gpu.addresses.permits({from, bytes}, false) &&
                       gpu.device().read(target, from);
    return finish(gpu, moved, bytes, kHostBytesPerSecond);
  });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                              CUstream stream) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (!gpu.has_stream(stream)) return kInvalidHandle;
    if (bytes == 0) return kSuccess;
    const bool moved = gpu.addresses.permits({from, bytes}, false) &&
                       gpu.addresses.permits({to, bytes}, true) &&
                       gpu.device().copy(to, from, bytes);
    return finish(gpu, moved, bytes, kDeviceBytesPerSecond);
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream stream) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (!gpu.has_stream(stream)) return kInvalidHandle;
    if (bytes == 0) return kSuccess;
    const bool moved =
        gpu.addresses.permits({to, bytes}, true) && gpu.device().fill(to, std::byte{value}, bytes);
    return finish(gpu, moved, bytes, kDeviceBytesPerSecond);
  });
}

}  // namespace assay::gpu
