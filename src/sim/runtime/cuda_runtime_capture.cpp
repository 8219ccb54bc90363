// Captures streams into graphs.
#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {
namespace {

template <class Body>
cudaError_t call_on(cudaStream_t stream, Body&& body) {
  return call([&](Runtime& runtime) {
    return runtime.valid(stream) ? body(runtime) : cudaErrorInvalidResourceHandle;
  });
}

cudaStreamCaptureStatus status_of(const Capture* c) {
  if (c == nullptr) return cudaStreamCaptureStatusNone;
  return c->spoilt ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

cudaError_t begin(Runtime& runtime, cudaStream_t stream, cudaStreamCaptureMode mode,
                  cudaGraph_t graph, Nodes after) {
  if (mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
  return runtime.captures().begin(Runtime::key_of(stream), Runtime::is_blocking(stream), mode,
                                  graph, std::move(after));
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call_on(stream,
                 [&](Runtime& runtime) { return begin(runtime, stream, mode, nullptr, {}); });
}
ASSAY_CUDA_PER_THREAD(2, cudaStreamBeginCapture, _ptsz);

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges, size_t count,
                                          cudaStreamCaptureMode mode) {
  return call_on(stream, [&](Runtime& runtime) {
    if (!runtime.valid(graph) || (count > 0 && dependencies == nullptr))
      return cudaErrorInvalidValue;
    if (edges != nullptr) return runtime.unsupported("edge data of CUDA graphs");
    Nodes after(dependencies, dependencies + count);
    for (const cudaGraphNode_t n : after) {
      if (!graph->has(n)) return cudaErrorInvalidValue;
    }
    return begin(runtime, stream, mode, graph, std::move(after));
  });
}
ASSAY_CUDA_PER_THREAD(6, cudaStreamBeginCaptureToGraph, _ptsz);

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call_on(stream, [&](Runtime& runtime) {
    if (graph == nullptr) return cudaErrorInvalidValue;
    std::unique_ptr<CUgraph_st> fresh;
    const cudaError_t error = runtime.captures().end(Runtime::key_of(stream), *graph, fresh);
    if (fresh) runtime.add_graph(std::move(fresh));
    return error;
  });
}
ASSAY_CUDA_PER_THREAD(2, cudaStreamEndCapture, _ptsz);

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call_on(stream, [&](Runtime& runtime) {
    if (status == nullptr) return cudaErrorInvalidValue;
    if (const cudaError_t error = runtime.admit(stream); error != cudaSuccess) return error;
    *status = status_of(runtime.captures().of(Runtime::key_of(stream)));
    return cudaSuccess;
  });
}
ASSAY_CUDA_PER_THREAD(2, cudaStreamIsCapturing, _ptsz);

// The dependencies are valid until the stream is used again.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return call_on(stream, [&](Runtime& runtime) {
    if (status == nullptr) return cudaErrorInvalidValue;
    if (const cudaError_t error = runtime.admit(stream); error != cudaSuccess) return error;
    const StreamKey key = Runtime::key_of(stream);
    const Capture* const c = runtime.captures().of(key);
    *status = status_of(c);
    if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
    const Nodes& nodes = c->streams.at(key);
    if (id != nullptr) *id = c->id;
    if (graph != nullptr) *graph = c->graph;
    if (dependencies != nullptr) *dependencies = nodes.data();
    if (edges != nullptr) *edges = nullptr;
    if (count != nullptr) *count = nodes.size();
    return cudaSuccess;
  });
}
ASSAY_CUDA_PER_THREAD(7, cudaStreamGetCaptureInfo, _ptsz);

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call([&](Runtime&) {
    if (mode == nullptr || *mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
    std::swap(*mode, ThreadState::current().capture_mode);
    return cudaSuccess;
  });
}

}  // namespace assay::sim::cuda
