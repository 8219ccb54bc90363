// Memory from the context.
#pragma once

#include <cstdint>
#include <cstring>

#include "abi.h"
#include "blocks.h"

namespace {

struct Buffer {
  Buffer(assay_ctx* context, Index n)
      : ctx(context),
        data(static_cast<float*>(
            context->alloc(context, static_cast<std::size_t>(n) * 4 + 4, 64, 0))) {
    if (data != nullptr) std::memset(data, 0, static_cast<std::size_t>(n) * 4);
  }
  ~Buffer() {
    if (data != nullptr) ctx->free(ctx, data);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  operator float*() const { return data; }

  assay_ctx* ctx;
  float* data;
};

}  // namespace
