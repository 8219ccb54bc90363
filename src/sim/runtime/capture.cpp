#include "sim/runtime/capture.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace assay::sim::cuda {
namespace {

cudaError_t spoil(Capture& c, cudaError_t error) {
  c.spoilt = true;
  return error;
}

void add_once(Nodes& to, const Nodes& nodes) {
  for (const cudaGraphNode_t n : nodes) {
    if (std::ranges::find(to, n) == to.end()) to.push_back(n);
  }
}

// Whether everything that other streams did comes before the last operation of the origin stream.
bool is_joined(const Capture& c) {
  std::unordered_set<cudaGraphNode_t> known;
  Nodes open = c.streams.at(c.origin);
  while (!open.empty()) {
    const cudaGraphNode_t n = open.back();
    open.pop_back();
    if (known.insert(n).second) open.insert(open.end(), n->after.begin(), n->after.end());
  }
  return std::ranges::all_of(c.streams, [&](const auto& stream) {
    return std::ranges::all_of(stream.second, [&](cudaGraphNode_t n) { return known.contains(n); });
  });
}

}  // namespace

Capture* Captures::of(StreamKey stream) {
  for (const auto& c : captures_) {
    if (c->streams.contains(stream)) return c.get();
  }
  return nullptr;
}

Capture* Captures::find(std::uint64_t id) {
  const auto found = std::ranges::find_if(captures_, [&](const auto& c) { return c->id == id; });
  return found == captures_.end() ? nullptr : found->get();
}

bool Captures::uses(const CUgraph_st* graph) const {
  return std::ranges::any_of(captures_, [&](const auto& c) { return c->graph == graph; });
}

cudaError_t Captures::begin(StreamKey stream, bool blocking, cudaStreamCaptureMode mode,
                            CUgraph_st* graph, Nodes after) {
  if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  if (Capture* c = of(stream)) return spoil(*c, cudaErrorIllegalState);
  auto c = std::make_unique<Capture>();
  if (graph == nullptr) {
    c->owned = std::make_unique<CUgraph_st>();
    graph = c->owned.get();
  }
  c->graph = graph;
  c->origin = stream;
  c->mode = mode;
  c->thread = std::this_thread::get_id();
  c->id = next_id_++;
  c->streams[stream] = std::move(after);
  c->blocking = blocking ? 1 : 0;
  captures_.push_back(std::move(c));
  return cudaSuccess;
}

cudaError_t Captures::end(StreamKey stream, CUgraph_st*& graph,
                          std::unique_ptr<CUgraph_st>& fresh) {
  graph = nullptr;
  Capture* const c = of(stream);
  if (c == nullptr) return cudaErrorIllegalState;
  if (c->origin != stream) return spoil(*c, cudaErrorStreamCaptureUnmatched);
  if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id()) {
    return spoil(*c, cudaErrorStreamCaptureWrongThread);
  }
  cudaError_t error = cudaSuccess;
  if (c->spoilt) {
    error = cudaErrorStreamCaptureInvalidated;
  } else if (!is_joined(*c)) {
    error = cudaErrorStreamCaptureUnjoined;
  } else {
    graph = c->graph;
    fresh = std::move(c->owned);
  }
  std::erase_if(captures_, [&](const auto& other) { return other.get() == c; });
  return error;
}

cudaError_t Captures::add(StreamKey stream, Work work) {
  Capture& c = *of(stream);
  if (c.spoilt) return cudaErrorStreamCaptureInvalidated;
  Nodes& last = c.streams[stream];
  last = {c.graph->add(std::move(work), last)};
  return cudaSuccess;
}

CapturedEvent Captures::record(StreamKey stream) {
  const Capture& c = *of(stream);
  return {c.id, c.streams.at(stream)};
}

cudaError_t Captures::wait(StreamKey stream, bool blocking, const CapturedEvent& event) {
  Capture* const of_event = find(event.capture);
  Capture* const of_stream = of(stream);
  if (of_event == nullptr) {
    return of_stream == nullptr ? cudaErrorCapturedEvent
                                : spoil(*of_stream, cudaErrorStreamCaptureIsolation);
  }
  if (of_event->spoilt) return cudaErrorStreamCaptureInvalidated;
  if (stream == nullptr) return spoil(*of_event, cudaErrorStreamCaptureImplicit);
  if (of_stream != nullptr && of_stream != of_event) {
    spoil(*of_event, {});
    return spoil(*of_stream, cudaErrorStreamCaptureMerge);
  }
  if (of_stream == nullptr && blocking) ++of_event->blocking;
  add_once(of_event->streams[stream], event.nodes);
  return cudaSuccess;
}

cudaError_t Captures::refuse(StreamKey stream) {
  return spoil(*of(stream), cudaErrorStreamCaptureUnsupported);
}

cudaError_t Captures::isolate(StreamKey stream) {
  return spoil(*of(stream), cudaErrorStreamCaptureIsolation);
}

void Captures::forget(StreamKey stream) {
  if (Capture* c = of(stream)) {
    c->spoilt = true;
    if (c->origin == stream) {
      std::erase_if(captures_, [&](const auto& other) { return other.get() == c; });
    } else {
      c->streams.erase(stream);
    }
  }
}

cudaError_t Captures::use_legacy() {
  for (const auto& c : captures_) {
    if (c->blocking > 0) return spoil(*c, cudaErrorStreamCaptureImplicit);
  }
  return cudaSuccess;
}

// CUDA Runtime API, cudaThreadExchangeStreamCaptureMode.
cudaError_t Captures::use_unsafe(cudaStreamCaptureMode mode) {
  for (const auto& c : captures_) {
    const bool own = c->thread == std::this_thread::get_id();
    const bool forbidden =
        (mode == cudaStreamCaptureModeGlobal && c->mode == cudaStreamCaptureModeGlobal) ||
        (mode != cudaStreamCaptureModeRelaxed && own && c->mode != cudaStreamCaptureModeRelaxed);
    if (forbidden) return spoil(*c, cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

cudaError_t Captures::use_all() {
  for (const auto& c : captures_) spoil(*c, {});
  return any() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace assay::sim::cuda
