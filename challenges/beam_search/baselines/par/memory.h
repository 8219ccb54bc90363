// Memory from the context, and work on several threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "abi.h"

namespace {

// An array from the context's allocator.
template <class T>
class Scratch {
 public:
  Scratch(assay_ctx* ctx, std::int64_t n)
      : ctx_(ctx),
        data_(static_cast<T*>(ctx->alloc(
            ctx, static_cast<std::size_t>(std::max<std::int64_t>(n, 1)) * sizeof(T), 64, 0))) {}
  ~Scratch() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  Scratch(const Scratch&) = delete;
  bool failed() const { return data_ == nullptr; }
  T* data() const { return data_; }
  T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  assay_ctx* ctx_;
  T* data_;
};

// Runs body(thread) on up to `threads` threads, this one included. A thread is made for each call:
// one that slept through the model's part would have to be woken for it as well.
template <class Body>
void on_threads(int threads, const Body& body) {
  std::vector<std::thread> others;
  try {
    for (int t = 1; t < threads; ++t) others.emplace_back([&body, t] { body(t); });
  } catch (const std::system_error&) {  // fewer threads then
  }
  body(0);
  for (std::thread& other : others) other.join();
}

}  // namespace
