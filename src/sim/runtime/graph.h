// CUDA graphs: operations and the dependencies between them, stored for repeated launches. Runtime
// executes the nodes; this file holds the nodes and an order to execute them in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "sim/device.h"
#include "sim/operation.h"
#include "sim/runtime/abi.h"

namespace assay::sim::cuda {

// A box of rows in one memory.
struct Rows {
  char* begin = nullptr;
  std::size_t row_pitch = 0, slice_pitch = 0;
  char* row(std::size_t y, std::size_t z) const { return begin + z * slice_pitch + y * row_pitch; }
};

struct KernelWork {
  CUkern_st* kernel = nullptr;
  LaunchConfig config;
  std::vector<std::byte> params;  // copied when the node was made
};
struct CopyWork {
  Rows to, from;
  cudaExtent box{};
  cudaMemcpyKind kind{};
};
struct FillWork {
  Rows to;
  int value = 0;
  cudaExtent box{};
};
struct HostWork {
  cudaHostFn_t function = nullptr;
  void* data = nullptr;
};
using Work = std::variant<std::monostate, KernelWork, CopyWork, FillWork, HostWork>;

cudaGraphNodeType type_of(const Work&);

// The objects behind CUDA's opaque handles.
struct CUgraphNode_st {
  CUgraph_st* graph = nullptr;
  Work work;
  std::vector<cudaGraphNode_t> after;  // its dependencies, each once
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // in creation order

  cudaGraphNode_t add(Work, std::vector<cudaGraphNode_t> after);
  // Also removes it from the dependencies of other nodes.
  bool remove(cudaGraphNode_t);
  bool has(cudaGraphNode_t) const;
  std::unique_ptr<CUgraph_st> clone() const;
};

// A node that is ready to execute.
struct GraphStep {
  const CUgraphNode_st* node = nullptr;  // for identification only: the graph may be gone
  Work work;
  std::vector<std::size_t> after;  // earlier steps
  std::size_t branch = 0;
};

struct CUgraphExec_st {
  std::vector<GraphStep> steps;
  std::vector<cudaStream_t> branches;  // of branch 1 and beyond: separate streams
  unsigned long long flags = 0;
  Clock last;  // the end of its last launch; the next launch comes after it

  GraphStep* find(const CUgraphNode_st*);
  std::size_t branch_count() const;
};

// Orders nodes so that dependencies come first; otherwise in creation order. Each node gets a
// branch: of two steps in one branch, the later depends on the earlier, directly or indirectly. So
// two steps are ordered exactly if their dependencies say so. Absent if there is a cycle.
std::optional<std::vector<GraphStep>> plan(const CUgraph_st&);

// Gives the steps the work of another graph, which must have the same nodes and dependencies,
// created in the same order. Changes nothing unless it succeeds.
struct GraphUpdate {
  cudaGraphExecUpdateResult result = cudaGraphExecUpdateSuccess;
  cudaGraphNode_t node = nullptr;  // where the graphs differ
};
GraphUpdate update(CUgraphExec_st&, const CUgraph_st&);

}  // namespace assay::sim::cuda
