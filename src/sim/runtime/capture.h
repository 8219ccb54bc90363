// Streams that are being captured: operations issued in them become nodes of a graph.
//
// A capture begins in one stream and extends to those that wait for an event recorded in it. A
// mistake invalidates the capture, and is reported again when it ends (CUDA C++ Programming Guide,
// "Creating a Graph Using Stream Capture").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "sim/runtime/graph.h"

namespace assay::sim::cuda {

// Identifies a stream, or a thread by its own stream; nullptr: the legacy stream.
using StreamKey = const void*;
using Nodes = std::vector<cudaGraphNode_t>;

struct Capture {
  CUgraph_st* graph = nullptr;
  std::unique_ptr<CUgraph_st> owned;  // unless the program supplied the graph
  StreamKey origin = nullptr;
  cudaStreamCaptureMode mode{};
  std::thread::id thread;
  std::uint64_t id = 0;
  bool spoilt = false;
  std::map<StreamKey, Nodes> streams;  // dependencies of the next node in each stream
  std::size_t blocking = 0;            // how many of them the legacy stream waits for
};

// What an event stands for that was recorded in a capture.
struct CapturedEvent {
  std::uint64_t capture = 0;  // its id, from 1
  Nodes nodes;
};

class Captures {
 public:
  bool any() const { return !captures_.empty(); }
  // The capture that a stream is part of; nullptr: none.
  Capture* of(StreamKey);
  Capture* find(std::uint64_t id);
  bool uses(const CUgraph_st*) const;
  void clear() { captures_.clear(); }

  // `blocking`: the legacy stream waits for this stream; likewise in `wait`. `graph` is nullptr for
  // a new one.
  cudaError_t begin(StreamKey, bool blocking, cudaStreamCaptureMode, CUgraph_st* graph, Nodes);
  // Ends the capture whatever it returns. If the graph was new, `fresh` owns it.
  cudaError_t end(StreamKey, CUgraph_st*& graph, std::unique_ptr<CUgraph_st>& fresh);
  // Adds a node in the stream, which must be part of a valid capture.
  cudaError_t add(StreamKey, Work);
  CapturedEvent record(StreamKey);
  // The stream waits for something recorded in a capture, and so becomes part of that capture.
  cudaError_t wait(StreamKey, bool blocking, const CapturedEvent&);
  // A call that cannot be captured, in a captured stream: invalidates the capture.
  cudaError_t refuse(StreamKey);
  // Likewise for a wait for work outside the capture.
  cudaError_t isolate(StreamKey);
  // The stream was destroyed.
  void forget(StreamKey);

  // Something is issued in the legacy stream: an error while a blocking stream is being captured.
  cudaError_t use_legacy();
  // A call that might wait for a stream that is being captured. `mode` is the thread's.
  cudaError_t use_unsafe(cudaStreamCaptureMode mode);
  // Likewise for a call that waits for all streams.
  cudaError_t use_all();

 private:
  std::vector<std::unique_ptr<Capture>> captures_;
  std::uint64_t next_id_ = 1;
};

}  // namespace assay::sim::cuda
