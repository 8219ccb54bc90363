// CUDA graphs: the order of their nodes, then the API on a fake device.
#include "sim/runtime/graph.h"

#include "sim/runtime/runtime_fixture.h"

namespace assay::sim::cuda {
namespace {

using testing::ElementsAre;

// --- plans ---

class Plan : public testing::Test {
 protected:
  cudaGraphNode_t add(std::vector<cudaGraphNode_t> after = {}) {
    return graph_.add(HostWork{}, std::move(after));
  }
  std::vector<std::size_t> branches() {
    std::vector<std::size_t> out;
    const std::vector<GraphStep> steps = plan(graph_).value();
    for (const GraphStep& s : steps) out.push_back(s.branch);
    return out;
  }
  CUgraph_st graph_;
};

TEST_F(Plan, AChainIsOneBranch) {
  const auto a = add(), b = add({a});
  add({b});
  EXPECT_THAT(branches(), ElementsAre(0, 0, 0));
}

TEST_F(Plan, UnorderedNodesHaveBranchesOfTheirOwn) {
  const auto a = add(), left = add({a}), right = add({a});
  add({left, right});
  EXPECT_THAT(branches(), ElementsAre(0, 0, 1, 0));
}

// However often a graph forks, it has only as many branches as run side by side.
TEST_F(Plan, ABranchThatHasEndedIsTakenAgain) {
  auto last = add();
  for (int i = 0; i < 5; ++i) {
    const auto left = add({last}), right = add({last});
    last = add({left, right});
  }
  CUgraphExec_st exec;
  exec.steps = plan(graph_).value();
  EXPECT_EQ(exec.branch_count(), 2u);
}

// If a step is not known to follow the last node of a branch, that node may still be running.
TEST_F(Plan, ABranchThatIsNotKnownToHaveEndedIsNot) {
  const auto a = add(), left = add({a}), right = add({a});
  add({left});
  add({left});
  add({right});
  EXPECT_THAT(branches(), ElementsAre(0, 0, 1, 0, 2, 1));
}

TEST_F(Plan, DependenciesThatWereMadeLaterCount) {
  const auto a = add(), b = add();
  a->after = {b};
  const auto steps = plan(graph_).value();
  EXPECT_EQ(steps[0].node, b);
  EXPECT_EQ(steps[1].node, a);
  EXPECT_THAT(steps[1].after, ElementsAre(0));
}

TEST_F(Plan, ACycleHasNone) {
  const auto a = add(), b = add({a});
  a->after = {b};
  EXPECT_FALSE(plan(graph_));
}

// --- the API ---

class Graphs : public RuntimeTest {
 protected:
  static cudaStream_t stream() {
    cudaStream_t s = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&s, 1), cudaSuccess);
    return s;
  }
  static cudaGraph_t graph() {
    cudaGraph_t g = nullptr;
    EXPECT_EQ(cudaGraphCreate(&g, 0), cudaSuccess);
    return g;
  }
  char* device(std::size_t bytes = 16) {
    void* p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, bytes), cudaSuccess);
    return static_cast<char*>(p);
  }
  cudaKernelNodeParams params() { return {&stub_, {2, 1, 1}, {64, 1, 1}, 16, args_, nullptr}; }
  cudaGraphNode_t kernel(cudaGraph_t g, std::vector<cudaGraphNode_t> after = {}) {
    cudaGraphNode_t n = nullptr;
    const cudaKernelNodeParams p = params();
    EXPECT_EQ(cudaGraphAddKernelNode(&n, g, after.data(), after.size(), &p), cudaSuccess);
    return n;
  }
  static cudaGraphExec_t instantiate(cudaGraph_t g) {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, g, 0), cudaSuccess);
    return exec;
  }
  // The second argument of each kernel node in a launch.
  std::vector<int> arguments() const {
    std::vector<int> out;
    for (const auto& l : state_.launches) {
      out.push_back(0);
      std::memcpy(&out.back(), l.params.data() + 8, sizeof(int));
    }
    return out;
  }
};

TEST_F(Graphs, KernelsRunInTheOrderOfTheirDependencies) {
  const cudaGraph_t g = graph();
  int_arg_ = 1;
  const auto first = kernel(g);
  int_arg_ = 2;
  const auto second = kernel(g);
  int_arg_ = 3;  // parameters are copied when the node is made
  EXPECT_EQ(cudaGraphAddDependencies(g, &second, &first, nullptr, 1), cudaSuccess);
  const cudaGraphExec_t exec = instantiate(g);
  EXPECT_EQ(cudaGraphDestroy(g), cudaSuccess);
  EXPECT_TRUE(state_.launches.empty());
  EXPECT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  EXPECT_THAT(arguments(), ElementsAre(2, 1));
  EXPECT_EQ(state_.launches[0].config.grid.x, 2u);
  EXPECT_EQ(state_.launches[0].config.dynamic_shared_bytes, 16u);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, nullptr), cudaErrorInvalidValue);
}

TEST_F(Graphs, EachKernelOfALaunchIsALaunch) {
  const cudaGraph_t g = graph();
  kernel(g, {kernel(g)});
  const cudaGraphExec_t exec = instantiate(g);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  EXPECT_EQ(state_.launches.size(), 4u);
}

TEST_F(Graphs, CopiesFillsAndFunctions) {
  const cudaGraph_t g = graph();
  char *p = device(), from[16] = "from the host..", to[16] = {};
  cudaGraphNode_t fill = nullptr, copy = nullptr, function = nullptr, back = nullptr;
  cudaMemsetParams set{p, 0, 0x7a7a, 2, 8, 1};
  ASSERT_EQ(cudaGraphAddMemsetNode(&fill, g, nullptr, 0, &set), cudaSuccess);
  ASSERT_EQ(cudaGraphAddMemcpyNode1D(&copy, g, &fill, 1, p, from, 4, cudaMemcpyDefault),
            cudaSuccess);
  ASSERT_EQ(cudaGraphAddMemcpyNode1D(&back, g, &copy, 1, to, p, 16, cudaMemcpyDeviceToHost),
            cudaSuccess);
  int called = 0;
  cudaHostNodeParams host{[](void* n) { ++*static_cast<int*>(n); }, &called};
  ASSERT_EQ(cudaGraphAddHostNode(&function, g, &copy, 1, &host), cudaSuccess);
  const cudaStream_t s = stream();
  EXPECT_EQ(cudaGraphLaunch(instantiate(g), s), cudaSuccess);
  EXPECT_EQ(called, 1);
  EXPECT_STREQ(to, "") << "the host has not waited";
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_EQ(std::string(to, 16), "fromzzzzzzzzzzzz");
  cudaGraphNodeType type{};
  EXPECT_EQ(cudaGraphNodeGetType(back, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeMemcpy);
  std::size_t count = 0;
  EXPECT_EQ(cudaGraphGetNodes(g, nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 4u);
  cudaGraphNode_t roots[2] = {};
  count = 2;
  EXPECT_EQ(cudaGraphGetRootNodes(g, roots, &count), cudaSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_THAT(roots, ElementsAre(fill, nullptr));
  set.value = 0x1234;
  EXPECT_EQ(cudaGraphAddMemsetNode(&fill, g, nullptr, 0, &set), cudaErrorNotSupported);
}

bool before(const Operation& a, const Operation& b) { return b.knows(a.stream, a.time); }

TEST_F(Graphs, DependenciesOrderAndNothingElseDoes) {
  const cudaGraph_t g = graph();
  const auto root = kernel(g);
  const auto left = kernel(g, {root}), right = kernel(g, {root});
  kernel(g, {left, right});
  const cudaStream_t s = stream();
  const cudaGraphExec_t exec = instantiate(g);
  launch({1, 1, 1}, {32, 1, 1}, 0, s);
  EXPECT_EQ(cudaGraphLaunch(exec, s), cudaSuccess);
  launch({1, 1, 1}, {32, 1, 1}, 0, s);
  const auto& o = state_.operations;
  ASSERT_EQ(o.size(), 6u);
  const Operation &a = o[1], &b = o[2], &c = o[3], &d = o[4];
  for (const Operation* x : {&a, &b, &c, &d}) {
    EXPECT_TRUE(before(o[0], *x)) << "the stream's earlier work";
    EXPECT_TRUE(before(*x, o[5])) << "and its later";
  }
  EXPECT_TRUE(before(a, b) && before(a, c) && before(b, d) && before(c, d));
  EXPECT_FALSE(before(b, c) || before(c, b));
  EXPECT_EQ(c.stream_name, "branch 2 of a graph");
}

TEST_F(Graphs, LaunchesOfOneGraphComeOneAfterAnother) {
  const cudaGraph_t g = graph();
  kernel(g);
  const cudaGraphExec_t exec = instantiate(g), other = instantiate(g);
  const cudaStream_t s = stream(), t = stream();
  for (const auto& [e, in] : {std::pair{exec, s}, {exec, t}, {other, s}, {other, s}})
    EXPECT_EQ(cudaGraphLaunch(e, in), cudaSuccess);
  const auto& o = state_.operations;
  EXPECT_TRUE(before(o[0], o[1]));
  EXPECT_FALSE(before(o[1], o[2]));
}

TEST_F(Graphs, UpdateTakesOtherParametersAndNoOtherShape) {
  const cudaGraph_t g = graph();
  kernel(g, {kernel(g)});
  const cudaGraphExec_t exec = instantiate(g);
  cudaGraphExecUpdateResultInfo info{};
  const cudaGraph_t same = graph(), longer = graph(), flat = graph(), typed = graph();
  int_arg_ = 7;
  kernel(same, {kernel(same)});
  EXPECT_EQ(cudaGraphExecUpdate(exec, same, &info), cudaSuccess);
  kernel(longer, {kernel(longer, {kernel(longer)})});
  kernel(flat);
  kernel(flat);
  const auto first = kernel(typed);
  cudaGraphNode_t empty = nullptr;
  ASSERT_EQ(cudaGraphAddEmptyNode(&empty, typed, &first, 1), cudaSuccess);
  for (const auto& [changed, result] : {std::pair{longer, cudaGraphExecUpdateErrorTopologyChanged},
                                        {flat, cudaGraphExecUpdateErrorTopologyChanged},
                                        {typed, cudaGraphExecUpdateErrorNodeTypeChanged}}) {
    EXPECT_EQ(cudaGraphExecUpdate(exec, changed, &info), cudaErrorGraphExecUpdateFailure);
    EXPECT_EQ(info.result, result);
  }
  EXPECT_EQ(info.errorNode, empty);
  EXPECT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  EXPECT_THAT(arguments(), ElementsAre(7, 7));
}

TEST_F(Graphs, ANodeOfAnInstantiatedGraphMayBeChanged) {
  const cudaGraph_t g = graph();
  const auto n = kernel(g);
  const cudaGraphExec_t exec = instantiate(g);
  cudaKernelNodeParams p = params();
  int_arg_ = 9;
  EXPECT_EQ(cudaGraphExecKernelNodeSetParams(exec, n, &p), cudaSuccess);
  const cudaMemsetParams set{device(), 0, 0, 1, 16, 1};
  EXPECT_EQ(cudaGraphExecMemsetNodeSetParams(exec, n, &set), cudaErrorInvalidValue);
  cudaGraph_t clone = nullptr;
  EXPECT_EQ(cudaGraphClone(&clone, g), cudaSuccess);
  for (const cudaGraphExec_t e : {exec, instantiate(clone)})
    EXPECT_EQ(cudaGraphLaunch(e, nullptr), cudaSuccess);
  EXPECT_THAT(arguments(), ElementsAre(9, 42));
}

TEST_F(Graphs, Errors) {
  const cudaGraph_t g = graph(), other = graph();
  const auto n = kernel(g), foreign = kernel(other);
  cudaGraphNode_t out = nullptr;
  cudaGraphExec_t exec = nullptr;
  const cudaGraphNode_t twice[] = {n, n};
  EXPECT_EQ(cudaGraphAddEmptyNode(&out, g, &foreign, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphAddEmptyNode(&out, g, twice, 2), cudaErrorInvalidValue);
  cudaKernelNodeParams p = params();
  p.blockDim.x = 1025;
  EXPECT_EQ(cudaGraphAddKernelNode(&out, g, nullptr, 0, &p), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGraphInstantiate(&exec, g, 1 << 9), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphInstantiate(&exec, g, 4), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphAddDependencies(g, &n, &n, nullptr, 1), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec, g, 0), cudaErrorInvalidValue) << "a cycle";
  EXPECT_EQ(cudaGraphDestroyNode(n), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroyNode(n), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphDestroy(g), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(g), cudaErrorInvalidValue);
}

TEST_F(Graphs, AFaultEndsTheLaunch) {
  const cudaGraph_t g = graph();
  kernel(g, {kernel(g)});
  state_.launch_reply.status = LaunchStatus::illegal_address;
  EXPECT_EQ(cudaGraphLaunch(instantiate(g), nullptr), cudaSuccess);
  EXPECT_EQ(state_.launches.size(), 1u);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

}  // namespace
}  // namespace assay::sim::cuda
