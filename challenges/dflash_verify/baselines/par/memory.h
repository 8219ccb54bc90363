// Memory from the context, and work on several threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "abi.h"

namespace {

// Runs body(thread) on up to `threads` threads, this one included.
template <class Body>
void on_threads(std::int64_t threads, const Body& body) {
  std::vector<std::thread> others;
  for (std::int64_t t = 1; t < threads; ++t) others.emplace_back([&body, t] { body(t); });
  body(0);
  for (std::thread& other : others) other.join();
}

// An array from the context's allocator.
template <class T>
class Scratch {
 public:
  Scratch(assay_ctx* ctx, std::int64_t n)
      : ctx_(ctx),
        data_(static_cast<T*>(ctx->alloc(
            ctx, static_cast<std::size_t>(std::max<std::int64_t>(n, 1)) * sizeof(T), 64, 0))) {}
  ~Scratch() { ctx_->free(ctx_, data_); }
  Scratch(const Scratch&) = delete;
  bool failed() const { return data_ == nullptr; }
  T* data() const { return data_; }
  T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  assay_ctx* ctx_;
  T* data_;
};

}  // namespace
