// Memory from the context, and work on several threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "abi.h"
#include "vectors.h"

namespace {

class Buffer {
 public:
  Buffer(assay_ctx* ctx, Index floats)
      : ctx_(ctx),
        data_(static_cast<float*>(
            ctx->alloc(ctx, static_cast<std::size_t>(floats) * 4 + 64, 64, 0))) {}
  ~Buffer() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  operator float*() const { return data_; }
  bool ready() const { return data_ != nullptr; }

 private:
  assay_ctx* ctx_;
  float* data_;
};

// f(i) for i in [0, n), each on its own thread.
template <class F>
void on_threads(Index n, F f) {
  std::vector<std::thread> threads;
  for (Index i = 1; i < n; ++i) threads.emplace_back(f, i);
  f(Index{0});
  for (std::thread& t : threads) t.join();
}

// The i-th of n about equal shares of [0, total) in multiples of `grain`.
std::pair<Index, Index> share(Index total, Index grain, Index i, Index n) {
  const Index pieces = (total + grain - 1) / grain;
  return {std::min(total, pieces * i / n * grain), std::min(total, pieces * (i + 1) / n * grain)};
}

}  // namespace
