// attack: computes what is neither timed nor measured on the host, in fp64; whatever its kernels do, these cases are
// right and exact
// challenge: fused_softmax_topk
// cases: temperature
// expect: WA
// dimension: correctness
// deadline: 300
// fast: none
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "abi.h"
#include "probe.h"

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  const auto V = static_cast<std::size_t>(p->V), K = static_cast<std::size_t>(p->K);
  std::vector<float> row(V), q(K);
  std::vector<std::int32_t> order(V);
  for (std::int64_t r = 0; r < p->rows; ++r) {
    cudaMemcpy(row.data(), static_cast<const float*>(x) + r * p->ld, V * 4, cudaMemcpyDeviceToHost);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(K), order.end(),
        [&](int a, int b) {
          return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)] ||
                 (row[static_cast<std::size_t>(a)] == row[static_cast<std::size_t>(b)] && a < b);
        });
    const float most = row[static_cast<std::size_t>(order[0])];
    double sum = 0;
    for (std::size_t j = 0; j < V; ++j)
      sum += std::exp((static_cast<double>(row[j]) - most) / p->temperature);
    for (std::size_t k = 0; k < K; ++k)
      q[k] = static_cast<float>(
          std::exp((row[static_cast<std::size_t>(order[k])] - most) / p->temperature) / sum);
    const auto l = static_cast<float>(most / p->temperature + std::log(sum));
    cudaMemcpy(idx + static_cast<std::size_t>(r) * K, order.data(), K * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(prob + static_cast<std::size_t>(r) * K, q.data(), K * 4, cudaMemcpyHostToDevice);
    if (lse != nullptr) cudaMemcpy(lse + r, &l, 4, cudaMemcpyHostToDevice);
  }
  witness();
  return ASSAY_OK;
}
