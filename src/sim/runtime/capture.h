// Streams that are being captured: what is issued in them becomes nodes of a graph.
//
// A capture begins in one stream and takes in those that wait for an event which was recorded in
// it. A mistake spoils the capture, and is said again when it ends (CUDA C++ Programming Guide,
// "Creating a Graph Using Stream Capture").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "sim/runtime/graph.h"

namespace assay::sim::cuda {

// Of a stream, or of a thread whose own stream it is; nullptr: the legacy stream.
using StreamKey = const void*;
using Nodes = std::vector<cudaGraphNode_t>;

struct Capture {
  CUgraph_st* graph = nullptr;
  std::unique_ptr<CUgraph_st> owned;  // unless the program gave the graph
  StreamKey origin = nullptr;
  cudaStreamCaptureMode mode{};
  std::thread::id thread;
  std::uint64_t id = 0;
  bool spoilt = false;
  std::map<StreamKey, Nodes> streams;  // what the next node of each depends on
  std::size_t blocking = 0;            // how many of them the legacy stream waits for
};

// What an event that was recorded in a capture stands for.
struct CapturedEvent {
  std::uint64_t capture = 0;  // its id, from 1
  Nodes nodes;
};

class Captures {
 public:
  bool any() const { return !captures_.empty(); }
  // The one that a stream is part of; nullptr: none.
  Capture* of(StreamKey);
  Capture* find(std::uint64_t id);
  bool uses(const CUgraph_st*) const;
  void clear() { captures_.clear(); }

  // `blocking`: the legacy stream waits for the stream, of `wait` likewise. `graph` is nullptr for
  // a new one.
  cudaError_t begin(StreamKey, bool blocking, cudaStreamCaptureMode, CUgraph_st* graph, Nodes);
  // Ends the capture whatever it returns. The graph, if it was new, is `fresh`.
  cudaError_t end(StreamKey, CUgraph_st*& graph, std::unique_ptr<CUgraph_st>& fresh);
  // A node in the stream, which is part of a capture that is not spoilt.
  cudaError_t add(StreamKey, Work);
  CapturedEvent record(StreamKey);
  // The stream waits for what was recorded in a capture: it becomes part of that.
  cudaError_t wait(StreamKey, bool blocking, const CapturedEvent&);
  // A call that cannot be captured in the stream, which is: its capture is spoilt.
  cudaError_t refuse(StreamKey);
  // Likewise a wait for what was done outside.
  cudaError_t isolate(StreamKey);
  // The stream is no more.
  void forget(StreamKey);

  // Something is done in the legacy stream: an error while a blocking stream is captured.
  cudaError_t use_legacy();
  // A call that might wait for a stream that is captured. `mode` is that of the thread.
  cudaError_t use_unsafe(cudaStreamCaptureMode mode);
  // Likewise one that waits for all streams.
  cudaError_t use_all();

 private:
  std::vector<std::unique_ptr<Capture>> captures_;
  std::uint64_t next_id_ = 1;
};

}  // namespace assay::sim::cuda
