// Streams and events. The device has completed every operation when its call returns, so nothing is
// ever found unfinished. What the host has waited for is tracked separately (stream_order.h).
#include <algorithm>

#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {
namespace {

constexpr unsigned kNonBlocking = 1;                                          // for streams
constexpr unsigned kBlockingSync = 1, kDisableTiming = 2, kInterprocess = 4;  // for events
constexpr unsigned kExternal = 1;                                             // for record and wait
constexpr int kLeastPriority = 0, kGreatestPriority = -5;

template <class Body>
cudaError_t call_on(cudaStream_t stream, Body&& body) {
  return call([&](Runtime& runtime) {
    return runtime.valid(stream) ? body(runtime) : cudaErrorInvalidResourceHandle;
  });
}

template <class Body>
cudaError_t call_on(cudaEvent_t event, Body&& body) {
  return call([&](Runtime& runtime) {
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    return runtime.valid(event) ? body(runtime) : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t host_waits_for(Runtime& runtime, cudaStream_t stream) {
  if (const cudaError_t error = runtime.admit(stream); error != cudaSuccess) return error;
  if (runtime.is_captured(stream)) return runtime.captures().refuse(Runtime::key_of(stream));
  runtime.host_waits_for(stream);
  return cudaSuccess;
}

cudaError_t host_waits_for(Runtime& runtime, cudaEvent_t event) {
  if (event->captured.capture != 0) return cudaErrorCapturedEvent;
  runtime.host_waits_for(event);
  return cudaSuccess;
}

bool is_implicit(cudaStream_t stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

}  // namespace

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&](Runtime&) {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeastPriority);
}

// A priority outside the range is clamped to it.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call([&](Runtime& runtime) {
    if (stream == nullptr || flags > kNonBlocking) return cudaErrorInvalidValue;
    *stream = runtime.create_stream(flags, std::clamp(priority, kGreatestPriority, kLeastPriority));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&](Runtime& runtime) {
    return runtime.destroy_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call_blocking([&](Runtime& runtime) {
    return runtime.valid(stream) ? host_waits_for(runtime, stream) : cudaErrorInvalidResourceHandle;
  });
}
ASSAY_CUDA_PER_THREAD(1, cudaStreamSynchronize, _ptsz);

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call_on(stream, [&](Runtime& runtime) { return host_waits_for(runtime, stream); });
}
ASSAY_CUDA_PER_THREAD(1, cudaStreamQuery, _ptsz);

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call_on(stream, [&](Runtime& runtime) {
    if (flags > kExternal) return cudaErrorInvalidValue;
    if (!runtime.valid(event)) return cudaErrorInvalidResourceHandle;
    const StreamKey key = Runtime::key_of(stream);
    if (event->captured.capture != 0)
      return runtime.captures().wait(key, Runtime::is_blocking(stream), event->captured);
    if (runtime.is_captured(stream)) {
      if ((flags & kExternal) != 0)
        return runtime.unsupported_in_capture(stream, "cudaEventWaitExternal");
      // What came before the capture comes before each launch of its graph, or the program is
      // wrong.
      return event->recorded ? runtime.captures().isolate(key) : cudaSuccess;
    }
    if (const cudaError_t error = runtime.admit(stream); error != cudaSuccess) return error;
    runtime.wait(stream, event);
    return cudaSuccess;
  });
}
ASSAY_CUDA_PER_THREAD(3, cudaStreamWaitEvent, _ptsz);

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call_on(stream, [&](Runtime&) {
    if (priority == nullptr) return cudaErrorInvalidValue;
    *priority = is_implicit(stream) ? kLeastPriority : stream->priority;
    return cudaSuccess;
  });
}
ASSAY_CUDA_PER_THREAD_ALIAS(cudaStreamGetPriority, _ptsz);

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return call_on(stream, [&](Runtime&) {
    if (flags == nullptr) return cudaErrorInvalidValue;
    *flags = is_implicit(stream) ? 0 : stream->flags;
    return cudaSuccess;
  });
}
ASSAY_CUDA_PER_THREAD_ALIAS(cudaStreamGetFlags, _ptsz);

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return call_on(stream, [&](Runtime&) {
    if (id == nullptr) return cudaErrorInvalidValue;
    *id = is_implicit(stream) ? reinterpret_cast<std::uintptr_t>(stream) : stream->id;
    return cudaSuccess;
  });
}
ASSAY_CUDA_PER_THREAD_ALIAS(cudaStreamGetId, _ptsz);

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return call_on(stream, [&](Runtime&) {
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = 0;
    return cudaSuccess;
  });
}
ASSAY_CUDA_PER_THREAD_ALIAS(cudaStreamGetDevice, _ptsz);

// Stream attributes are hints, except for the priority.
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return call_on(to, [&](Runtime& runtime) {
    if (!runtime.valid(from)) return cudaErrorInvalidResourceHandle;
    if (!is_implicit(to) && !is_implicit(from)) to->priority = from->priority;
    return cudaSuccess;
  });
}
ASSAY_CUDA_PER_THREAD_ALIAS(cudaStreamCopyAttributes, _ptsz);

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value) {
  return call_on(stream, [&](Runtime&) {
    if (value == nullptr) return cudaErrorInvalidValue;
    *value = {};
    if (attribute == cudaLaunchAttributePriority && !is_implicit(stream)) {
      value->priority = stream->priority;
    }
    return cudaSuccess;
  });
}
ASSAY_CUDA_PER_THREAD_ALIAS(cudaStreamGetAttribute, _ptsz);

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value) {
  return call_on(stream, [&](Runtime&) {
    if (value == nullptr) return cudaErrorInvalidValue;
    switch (attribute) {
      case cudaLaunchAttributePriority:
        if (!is_implicit(stream)) stream->priority = value->priority;
        return cudaSuccess;
      case cudaLaunchAttributeAccessPolicyWindow:
      case cudaLaunchAttributeSynchronizationPolicy:
      case cudaLaunchAttributeMemSyncDomainMap:
      case cudaLaunchAttributeMemSyncDomain: return cudaSuccess;
      default: return cudaErrorInvalidValue;
    }
  });
}
ASSAY_CUDA_PER_THREAD_ALIAS(cudaStreamSetAttribute, _ptsz);

// --- host functions: called at once, without the lock, since all earlier work is done. They may
// notify the host's other threads, so from then on the host counts as knowing of that work. ---

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned flags) {
  const cudaError_t error = call_on(stream, [&](Runtime& runtime) {
    if (callback == nullptr || flags != 0) return cudaErrorInvalidValue;
    return host_waits_for(runtime, stream);
  });
  if (error != cudaSuccess) return error;
  callback(stream, cudaSuccess, data);
  return cudaSuccess;
}
ASSAY_CUDA_PER_THREAD(4, cudaStreamAddCallback, _ptsz);

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* data) {
  bool captured = false;
  const cudaError_t error = call_on(stream, [&](Runtime& runtime) {
    if (fn == nullptr) return cudaErrorInvalidValue;
    captured = runtime.is_captured(stream);
    if (!captured) return host_waits_for(runtime, stream);
    return runtime.captures().add(Runtime::key_of(stream), HostWork{fn, data});
  });
  if (error != cudaSuccess || captured) return error;
  fn(data);
  return cudaSuccess;
}
ASSAY_CUDA_PER_THREAD(3, cudaLaunchHostFunc, _ptsz);

// --- events ---

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&](Runtime& runtime) {
    constexpr unsigned known = kBlockingSync | kDisableTiming | kInterprocess;
    if (event == nullptr || (flags & ~known) != 0) return cudaErrorInvalidValue;
    if ((flags & kInterprocess) != 0) {
      return runtime.unsupported("cudaEventCreateWithFlags with cudaEventInterprocess");
    }
    *event = runtime.create_event(flags);
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&](Runtime& runtime) {
    return runtime.destroy_event(event) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}
ASSAY_CUDA_PER_THREAD(2, cudaEventRecord, _ptsz);

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return call_on(event, [&](Runtime& runtime) {
    if (!runtime.valid(stream)) return cudaErrorInvalidResourceHandle;
    if (flags > kExternal) return cudaErrorInvalidValue;
    if (const cudaError_t error = runtime.admit(stream); error != cudaSuccess) return error;
    if (runtime.is_captured(stream)) {
      if ((flags & kExternal) != 0)
        return runtime.unsupported_in_capture(stream, "cudaEventRecordExternal");
      event->recorded = false;
      event->captured = runtime.captures().record(Runtime::key_of(stream));
      return cudaSuccess;
    }
    event->captured = {};
    event->recorded = true;
    runtime.record(event, stream);
    event->time_ns = runtime.clock_ns();
    return cudaSuccess;
  });
}
ASSAY_CUDA_PER_THREAD(3, cudaEventRecordWithFlags, _ptsz);

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call_blocking([&](Runtime& runtime) {
    return runtime.valid(event) ? host_waits_for(runtime, event) : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call_on(event, [&](Runtime& runtime) { return host_waits_for(runtime, event); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call([&](Runtime& runtime) {
    if (milliseconds == nullptr) return cudaErrorInvalidValue;
    for (const cudaEvent_t event : {start, end}) {
      if (!runtime.valid(event) || !event->recorded || (event->flags & kDisableTiming) != 0) {
        return cudaErrorInvalidResourceHandle;
      }
    }
    for (const cudaEvent_t event : {start, end}) runtime.host_waits_for(event);
    const auto ns = static_cast<std::int64_t>(end->time_ns - start->time_ns);
    *milliseconds = static_cast<float>(static_cast<double>(ns) * 1e-6);
    return cudaSuccess;
  });
}

}  // namespace assay::sim::cuda
