// Sample entrant of assay, not a model's answer: plausible code with bugs that real answers had, written the
// way a kernel for a block of 256 threads would be.
//   1. Each thread keeps the 16 best of its strip (columns j mod 256), whatever K is: members are lost when
//      one strip holds more than 16 of the winners.
//   2. The merge orders by value alone, so ties come in any order.
//   3. The online softmax starts from a maximum of -1e4 and rescales late: rows far below that vanish.
//   4. NaN is never noticed, because every comparison with it is false.
#include "abi.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

constexpr int kThreads = 256, kLocal = 16;

struct Entry {
  float value;
  std::int32_t index;
};

struct Strip {
  Entry best[kLocal];
  int size = 0;

  void offer(Entry e) {
    if (size == kLocal && !(e.value > best[size - 1].value)) return;
    int k = size < kLocal ? size++ : kLocal - 1;
    for (; k > 0 && best[k - 1].value < e.value; --k) best[k] = best[k - 1];
    best[k] = e;
  }
};

}  // namespace

extern "C" int softmax_topk(assay_ctx*, const stk_params* p, const void* logits, std::int32_t* idx, float* prob,
                            float* lse) {
  if (p->rows < 0 || p->V < 0 || p->K < 0 || p->ld < p->V || !(p->temperature > 0)) return ASSAY_EINVAL;
  if (p->rows * p->V > 0 && logits == nullptr) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32) return ASSAY_ENOTSUP;
  std::vector<Entry> merged;
  for (std::int64_t r = 0; r < p->rows; ++r) {
    const float* x = static_cast<const float*>(logits) + r * p->ld;
    float max = -1e4f, sums[kThreads] = {};
    std::vector<Strip> strips(kThreads);
    for (std::int64_t j = 0; j < p->V; ++j) {
      const float z = x[j] / p->temperature;
      const auto thread = static_cast<std::size_t>(j % kThreads);
      if (z > max) {
        for (float& sum : sums) sum *= std::exp(max - z);
        max = z;
      }
      sums[thread] += std::exp(z - max);
      strips[thread].offer({x[j], static_cast<std::int32_t>(j)});
    }
    merged.clear();
    for (const Strip& s : strips) merged.insert(merged.end(), s.best, s.best + s.size);
    std::sort(merged.begin(), merged.end(), [](const Entry& a, const Entry& b) { return a.value > b.value; });
    const float sum = std::accumulate(sums, sums + kThreads, 0.0f);
    for (std::int32_t k = 0; k < p->K; ++k) {
      const bool used = k < static_cast<std::int32_t>(merged.size());
      idx[r * p->K + k] = used ? merged[static_cast<std::size_t>(k)].index : -1;
      prob[r * p->K + k] = used ? std::exp(merged[static_cast<std::size_t>(k)].value / p->temperature - max) / sum : 0.0f;
    }
    if (lse != nullptr) lse[r] = max + std::log(sum);
  }
  return ASSAY_OK;
}
