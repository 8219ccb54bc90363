// Memory from the context.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

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

}  // namespace
