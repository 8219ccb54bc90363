#include "sim/runtime/graph.h"

#include <algorithm>
#include <unordered_map>

namespace assay::sim::cuda {
namespace {

// For each branch, how many of its steps are known to be done.
using Known = std::vector<std::size_t>;

void join(Known& to, const Known& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t b = 0; b < from.size(); ++b) to[b] = std::max(to[b], from[b]);
}

// Chooses branches: the first whose last step is known to be done, or a new one.
class Branches {
 public:
  // Returns the branch of a step with these dependencies, and in `known` what it and its successors
  // know.
  std::size_t place(const std::vector<const Known*>& after, Known& known) {
    for (const Known* k : after) join(known, *k);
    known.resize(std::max(known.size(), done_.size()));
    std::size_t b = 0;
    while (b < done_.size() && known[b] != done_[b]) ++b;
    if (b == done_.size()) done_.push_back(0), known.resize(done_.size());
    known[b] = ++done_[b];
    return b;
  }

 private:
  std::vector<std::size_t> done_;  // steps of each branch
};

}  // namespace

cudaGraphNodeType type_of(const Work& work) {
  constexpr cudaGraphNodeType kTypes[] = {cudaGraphNodeTypeEmpty, cudaGraphNodeTypeKernel,
                                          cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeMemset,
                                          cudaGraphNodeTypeHost};
  return kTypes[work.index()];
}

cudaGraphNode_t CUgraph_st::add(Work work, std::vector<cudaGraphNode_t> after) {
  auto node = std::make_unique<CUgraphNode_st>();
  node->graph = this;
  node->work = std::move(work);
  node->after = std::move(after);
  nodes.push_back(std::move(node));
  return nodes.back().get();
}

bool CUgraph_st::remove(cudaGraphNode_t node) {
  if (!has(node)) return false;
  for (const auto& n : nodes) std::erase(n->after, node);
  return std::erase_if(nodes, [&](const auto& n) { return n.get() == node; }) > 0;
}

bool CUgraph_st::has(cudaGraphNode_t node) const {
  return std::ranges::any_of(nodes, [&](const auto& n) { return n.get() == node; });
}

std::unique_ptr<CUgraph_st> CUgraph_st::clone() const {
  auto copy = std::make_unique<CUgraph_st>();
  std::unordered_map<const CUgraphNode_st*, cudaGraphNode_t> counterpart;
  for (const auto& n : nodes) counterpart[n.get()] = copy->add(n->work, {});
  for (const auto& n : nodes) {
    for (const cudaGraphNode_t a : n->after) counterpart[n.get()]->after.push_back(counterpart[a]);
  }
  return copy;
}

GraphStep* CUgraphExec_st::find(const CUgraphNode_st* node) {
  const auto found = std::ranges::find(steps, node, &GraphStep::node);
  return found == steps.end() ? nullptr : &*found;
}

std::size_t CUgraphExec_st::branch_count() const {
  std::size_t count = 1;
  for (const GraphStep& s : steps) count = std::max(count, s.branch + 1);
  return count;
}

std::optional<std::vector<GraphStep>> plan(const CUgraph_st& graph) {
  std::unordered_map<const CUgraphNode_st*, std::size_t> place;
  std::vector<GraphStep> steps;
  std::vector<Known> known;
  Branches branches;
  std::vector<const CUgraphNode_st*> waiting;
  for (const auto& n : graph.nodes) waiting.push_back(n.get());
  while (!waiting.empty()) {
    const std::size_t before = steps.size();
    std::erase_if(waiting, [&](const CUgraphNode_st* n) {
      if (!std::ranges::all_of(n->after, [&](cudaGraphNode_t a) { return place.contains(a); }))
        return false;
      GraphStep step{n, n->work, {}, 0};
      std::vector<const Known*> after;
      for (const cudaGraphNode_t a : n->after) {
        step.after.push_back(place.at(a));
        after.push_back(&known[step.after.back()]);
      }
      Known own;
      step.branch = branches.place(after, own);
      place[n] = steps.size();
      steps.push_back(std::move(step));
      known.push_back(std::move(own));
      return true;
    });
    if (steps.size() == before) return std::nullopt;
  }
  return steps;
}

GraphUpdate update(CUgraphExec_st& exec, const CUgraph_st& graph) {
  const auto planned = plan(graph);
  if (!planned || planned->size() != exec.steps.size()) {
    return {cudaGraphExecUpdateErrorTopologyChanged, nullptr};
  }
  for (std::size_t i = 0; i < planned->size(); ++i) {
    const GraphStep &now = (*planned)[i], &was = exec.steps[i];
    auto* const node = const_cast<cudaGraphNode_t>(now.node);
    if (type_of(now.work) != type_of(was.work))
      return {cudaGraphExecUpdateErrorNodeTypeChanged, node};
    if (now.after != was.after) return {cudaGraphExecUpdateErrorTopologyChanged, node};
  }
  for (std::size_t i = 0; i < planned->size(); ++i) exec.steps[i].work = (*planned)[i].work;
  return {};
}

}  // namespace assay::sim::cuda
