// Streams and events. Work is done when its call returns; events behind a hold say that it is not.
#include <bit>

#include "support/cuda_double/call.h"

namespace assay::gpu {
namespace {

constexpr unsigned kEventFlags = 0x7;           // blocking sync, disable timing, interprocess
constexpr unsigned kWaitValueConditions = 0x3;  // greater or equal, equal, and, nor
constexpr unsigned kWaitValueFlush = 1u << 30;

bool waits_for_memory(SimulatedGpu& gpu, CUdeviceptr address) {
  constexpr std::uint64_t kBytes = sizeof(std::uint32_t);
  if (address % kBytes != 0) return false;
  const Range range{address, kBytes};
  if (gpu.host.contains(range)) return true;
  const sim::VariableInfo allocation = gpu.device().allocation(address);
  return Range{allocation.address, allocation.bytes}.contains(range) &&
         gpu.addresses.permits(range, false);
}

}  // namespace

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (stream == nullptr || flags > kNonBlockingStream) return kInvalidValue;
    *stream = gpu.streams.add({});
    return kSuccess;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    return gpu.has_stream(stream) ? kSuccess : kInvalidHandle;
  });
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                unsigned flags) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (!gpu.has_stream(stream)) return kInvalidHandle;
    if ((flags & ~(kWaitValueConditions | kWaitValueFlush)) != 0) return kInvalidValue;
    if (!waits_for_memory(gpu, address)) return kInvalidValue;
    if (stream != nullptr && gpu.host.contains({address, sizeof value}))
      stream->hold = {std::bit_cast<std::uint32_t*>(address), value};
    return kSuccess;
  });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (event == nullptr || (flags & ~kEventFlags) != 0) return kInvalidValue;
    *event = gpu.events.add({.timed = (flags & kEventDisableTiming) == 0, .hold = {}});
    return kSuccess;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (!gpu.events.has(event) || !gpu.has_stream(stream)) return kInvalidHandle;
    event->recorded = true;
    event->seconds = gpu.seconds;
    event->hold = stream != nullptr ? stream->hold : Hold{};
    return kSuccess;
  });
}

// An event that was never recorded counts as complete, as with the driver.
CUresult cuEventQuery(CUevent event) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (!gpu.events.has(event)) return kInvalidHandle;
    return event->hold.is_over() ? kSuccess : kNotReady;
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (milliseconds == nullptr) return kInvalidValue;
    for (const CUevent event : {begin, end}) {
      if (!gpu.events.has(event) || !event->timed || !event->recorded) return kInvalidHandle;
    }
    *milliseconds = static_cast<float>((end->seconds - begin->seconds) * 1e3);
    return kSuccess;
  });
}

}  // namespace assay::gpu
