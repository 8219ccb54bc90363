// CUDA graphs: made node by node or by capture, instantiated, launched.
//
// A launch executes the nodes one after another. Nodes that their dependencies leave unordered run
// in separate streams, so that their races are found like those of any two streams.
#include <algorithm>

#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"
#include "sim/runtime/transfers.h"

namespace assay::sim::cuda {
namespace {

// --- nodes ---

// Adds what `work_of(runtime, work)` describes.
template <class WorkOf>
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                     std::size_t count, WorkOf&& work_of) {
  return call([&](Runtime& runtime) {
    if (node == nullptr || !runtime.valid(graph) || (count > 0 && dependencies == nullptr))
      return cudaErrorInvalidValue;
    Nodes after;
    for (std::size_t i = 0; i < count; ++i) {
      const cudaGraphNode_t n = dependencies[i];
      if (!graph->has(n) || std::ranges::find(after, n) != after.end())
        return cudaErrorInvalidValue;
      after.push_back(n);
    }
    Work work;
    const cudaError_t error = work_of(runtime, work);
    if (error == cudaSuccess) *node = graph->add(std::move(work), std::move(after));
    return error;
  });
}

// Gives a node of a graph, or of an instantiated graph, new parameters.
template <class WorkOf>
cudaError_t change(Runtime& runtime, Work& work, WorkOf&& work_of) {
  Work fresh;
  const cudaError_t error = work_of(runtime, fresh);
  if (error != cudaSuccess) return error;
  if (type_of(fresh) != type_of(work)) return cudaErrorInvalidValue;
  work = std::move(fresh);
  return cudaSuccess;
}

template <class WorkOf>
cudaError_t change_in(cudaGraphExec_t exec, cudaGraphNode_t node, WorkOf&& work_of) {
  return call([&](Runtime& runtime) {
    const auto known = runtime.find_exec(exec);
    GraphStep* const step = known == nullptr ? nullptr : known->find(node);
    return step == nullptr ? cudaErrorInvalidValue : change(runtime, step->work, work_of);
  });
}

auto kernel_of(const cudaKernelNodeParams* p) {
  return [p](Runtime& runtime, Work& work) {
    if (p == nullptr) return cudaErrorInvalidValue;
    if (p->kernelParams == nullptr && p->extra != nullptr)
      return runtime.unsupported("cudaKernelNodeParams::extra");
    Kernel* kernel = nullptr;
    const cudaError_t error = runtime.find_kernel(p->func, kernel);
    if (error != cudaSuccess) return error;
    LaunchConfig config;
    config.grid = {p->gridDim.x, p->gridDim.y, p->gridDim.z};
    config.block = {p->blockDim.x, p->blockDim.y, p->blockDim.z};
    config.dynamic_shared_bytes = p->sharedMemBytes;
    return runtime.prepare(*kernel, config, p->kernelParams, work.emplace<KernelWork>());
  };
}

auto copy_of(const cudaMemcpy3DParms* p) {
  return [p](Runtime& runtime, Work& work) { return box_of(runtime, p, work.emplace<CopyWork>()); };
}

auto copy_of(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return [=](Runtime&, Work& work) {
    if (kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
    work = line(to, from, bytes, kind);
    return cudaSuccess;
  };
}

// A fill works on bytes, so the bytes of a larger element must all be equal.
auto fill_of(const cudaMemsetParams* p) {
  return [p](Runtime& runtime, Work& work) {
    if (p == nullptr || p->dst == nullptr) return cudaErrorInvalidValue;
    const unsigned size = p->elementSize, byte = p->value & 0xff;
    if (size != 1 && size != 2 && size != 4) return cudaErrorInvalidValue;
    for (unsigned i = 1; i < size; ++i) {
      if ((p->value >> (8 * i) & 0xff) != byte)
        return runtime.unsupported("memset nodes of elements whose bytes differ");
    }
    const std::size_t width = p->width * size;
    work = FillWork{{static_cast<char*>(p->dst), std::max(p->pitch, p->height > 1 ? 0 : width), 0},
                    static_cast<int>(byte),
                    {width, p->height, 1}};
    return cudaSuccess;
  };
}

auto host_of(const cudaHostNodeParams* p) {
  return [p](Runtime&, Work& work) {
    if (p == nullptr || p->fn == nullptr) return cudaErrorInvalidValue;
    work = HostWork{p->fn, p->userData};
    return cudaSuccess;
  };
}

// Returns some nodes of a graph as cudaGraphGetNodes does: the number of nodes, or as many as
// requested.
cudaError_t give(const Nodes& all, cudaGraphNode_t* nodes, std::size_t* count) {
  if (count == nullptr) return cudaErrorInvalidValue;
  if (nodes != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < all.size() ? all[i] : nullptr;
    *count = std::min(*count, all.size());
  } else {
    *count = all.size();
  }
  return cudaSuccess;
}

template <class Wanted>
cudaError_t give_nodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count,
                       Wanted&& wanted) {
  return call([&](Runtime& runtime) {
    if (!runtime.valid(graph)) return cudaErrorInvalidValue;
    Nodes found;
    for (const auto& n : graph->nodes) {
      if (wanted(*n)) found.push_back(n.get());
    }
    return give(found, nodes, count);
  });
}

// --- instantiation ---

constexpr unsigned long long kDeviceLaunch = 4, kKnownFlags = 15;

cudaError_t instantiate(Runtime& runtime, cudaGraphExec_t* exec, cudaGraph_t graph,
                        unsigned long long flags) {
  if (exec == nullptr || !runtime.valid(graph) || (flags & ~kKnownFlags) != 0)
    return cudaErrorInvalidValue;
  if ((flags & kDeviceLaunch) != 0) return runtime.unsupported("graphs that the device launches");
  auto steps = plan(*graph);
  if (!steps) return cudaErrorInvalidValue;
  CUgraphExec_st fresh;
  fresh.steps = std::move(*steps);
  fresh.flags = flags;
  *exec = runtime.add_exec(std::move(fresh));
  return cudaSuccess;
}

// --- launch ---

// One launch of a graph in a stream, in progress.
class GraphLaunch {
 public:
  GraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) : exec_(exec), stream_(stream) {}

  // The runtime is locked except during host functions.
  cudaError_t run() {
    cudaError_t error = call([&](Runtime& runtime) { return begin(runtime); });
    if (error != cudaSuccess) return error;
    for (std::size_t i = 0; i < graph_->steps.size() && error == cudaSuccess && !failed_; ++i) {
      error = call([&](Runtime& runtime) { return step(runtime, i); });
      const auto* host = std::get_if<HostWork>(&graph_->steps[i].work);
      if (error == cudaSuccess && host != nullptr) host->function(host->data);
    }
    if (failed_) return cudaSuccess;  // reported at the next call, as for launched kernels
    const cudaError_t ended = call([&](Runtime& runtime) { return end(runtime); });
    return error != cudaSuccess ? error : ended;
  }

 private:
  cudaStream_t lane(std::size_t branch) const {
    return branch == 0 ? stream_ : graph_->branches[branch - 1];
  }

  cudaError_t begin(Runtime& runtime) {
    graph_ = runtime.find_exec(exec_);
    if (graph_ == nullptr) return cudaErrorInvalidValue;
    if (!runtime.valid(stream_)) return cudaErrorInvalidResourceHandle;
    const cudaError_t error = runtime.admit_uncaptured(stream_, "cudaGraphLaunch");
    if (error != cudaSuccess) return error;
    runtime.flush_output();
    runtime.wait(stream_, graph_->last);
    const Clock start = runtime.record(stream_);
    for (const cudaStream_t branch : graph_->branches) runtime.wait(branch, start);
    done_.resize(graph_->steps.size());
    return cudaSuccess;
  }

  cudaError_t step(Runtime& runtime, std::size_t i) {
    const GraphStep& s = graph_->steps[i];
    const cudaStream_t in = lane(s.branch);
    for (const std::size_t a : s.after) {
      if (graph_->steps[a].branch != s.branch) runtime.wait(in, done_[a]);
    }
    const cudaError_t error = work(runtime, s.work, in);
    if (!graph_->branches.empty()) done_[i] = runtime.record(in);
    failed_ = error == cudaSuccess && runtime.sticky() != cudaSuccess;
    return error;
  }

  cudaError_t work(Runtime& runtime, const Work& work, cudaStream_t in) {
    if (const auto* kernel = std::get_if<KernelWork>(&work)) return runtime.run(*kernel, in);
    if (const auto* copy = std::get_if<CopyWork>(&work))
      return copy_box(runtime, {in, "a copy of a graph", true, true}, *copy);
    if (const auto* fill = std::get_if<FillWork>(&work))
      return fill_box(runtime, {in, "a fill of a graph", true, true}, *fill);
    if (std::holds_alternative<HostWork>(work)) runtime.host_waits_for(in);
    return cudaSuccess;
  }

  cudaError_t end(Runtime& runtime) {
    for (const cudaStream_t branch : graph_->branches)
      runtime.wait(stream_, runtime.record(branch));
    graph_->last = runtime.record(stream_);
    return cudaSuccess;
  }

  cudaGraphExec_t exec_;
  cudaStream_t stream_;
  std::shared_ptr<CUgraphExec_st> graph_;
  std::vector<Clock> done_;  // of each step, if there are branches
  bool failed_ = false;      // a kernel fault, which is sticky
};

}  // namespace

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return call([&](Runtime& runtime) {
    if (graph == nullptr || flags != 0) return cudaErrorInvalidValue;
    *graph = runtime.add_graph(std::make_unique<CUgraph_st>());
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&](Runtime& runtime) {
    if (runtime.captures().uses(graph)) return cudaErrorInvalidValue;
    return runtime.destroy_graph(graph) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return call([&](Runtime& runtime) {
    if (clone == nullptr || !runtime.valid(original)) return cudaErrorInvalidValue;
    *clone = runtime.add_graph(original->clone());
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaKernelNodeParams* params) {
  return add_node(node, graph, dependencies, count, kernel_of(params));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemcpy3DParms* params) {
  return add_node(node, graph, dependencies, count, copy_of(params));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count, void* to,
                                     const void* from, size_t bytes, cudaMemcpyKind kind) {
  return add_node(node, graph, dependencies, count, copy_of(to, from, bytes, kind));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemsetParams* params) {
  return add_node(node, graph, dependencies, count, fill_of(params));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 const cudaHostNodeParams* params) {
  return add_node(node, graph, dependencies, count, host_of(params));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, size_t count) {
  return add_node(node, graph, dependencies, count, [](Runtime&, Work&) { return cudaSuccess; });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                     size_t count) {
  return call([&](Runtime& runtime) {
    if (!runtime.valid(graph) || (count > 0 && (from == nullptr || to == nullptr)))
      return cudaErrorInvalidValue;
    if (edges != nullptr) return runtime.unsupported("edge data of CUDA graphs");
    for (std::size_t i = 0; i < count; ++i) {
      if (!graph->has(from[i]) || !graph->has(to[i])) return cudaErrorInvalidValue;
      if (std::ranges::find(to[i]->after, from[i]) != to[i]->after.end())
        return cudaErrorInvalidValue;
    }
    for (std::size_t i = 0; i < count; ++i) to[i]->after.push_back(from[i]);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return call([&](Runtime& runtime) {
    if (!runtime.valid(node) || runtime.captures().uses(node->graph)) return cudaErrorInvalidValue;
    return node->graph->remove(node) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return give_nodes(graph, nodes, count, [](const CUgraphNode_st&) { return true; });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return give_nodes(graph, nodes, count, [](const CUgraphNode_st& n) { return n.after.empty(); });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return call([&](Runtime& runtime) {
    if (type == nullptr || !runtime.valid(node)) return cudaErrorInvalidValue;
    *type = type_of(node->work);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  return call([&](Runtime& runtime) {
    if (!runtime.valid(node)) return cudaErrorInvalidValue;
    return change(runtime, node->work, kernel_of(params));
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return call([&](Runtime& runtime) { return instantiate(runtime, exec, graph, flags); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params) {
  return call([&](Runtime& runtime) {
    if (params == nullptr) return cudaErrorInvalidValue;
    const cudaError_t error = instantiate(runtime, exec, graph, params->flags);
    params->errNode_out = nullptr;
    params->result_out =
        error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
    return error;
  });
}
ASSAY_CUDA_PER_THREAD_ALIAS(cudaGraphInstantiateWithParams, _ptsz);

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  return call([&](Runtime& runtime) {
    const auto known = runtime.find_exec(exec);
    if (known == nullptr || !runtime.valid(graph)) return cudaErrorInvalidValue;
    const GraphUpdate done = update(*known, *graph);
    if (result != nullptr) *result = {done.result, done.node, nullptr};
    return done.result == cudaGraphExecUpdateSuccess ? cudaSuccess
                                                     : cudaErrorGraphExecUpdateFailure;
  });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  return change_in(exec, node, kernel_of(params));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes,
                                               cudaMemcpyKind kind) {
  return change_in(exec, node, copy_of(to, from, bytes, kind));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  return change_in(exec, node, fill_of(params));
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return call([&](Runtime& runtime) {
    const auto known = runtime.find_exec(exec);
    if (known == nullptr || flags == nullptr) return cudaErrorInvalidValue;
    *flags = known->flags;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return call([&](Runtime& runtime) {
    if (runtime.find_exec(exec) == nullptr) return cudaErrorInvalidValue;
    return runtime.valid(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}
ASSAY_CUDA_PER_THREAD_ALIAS(cudaGraphUpload, _ptsz);

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return GraphLaunch(exec, stream).run();
}
ASSAY_CUDA_PER_THREAD(2, cudaGraphLaunch, _ptsz);

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return call([&](Runtime& runtime) {
    return runtime.destroy_exec(exec) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

}  // namespace assay::sim::cuda
