// What kernels of several challenges need of the device and of its runtime.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "abi.h"

namespace {

constexpr int kWarp = 32, kMostWarps = 32;  // lanes of a warp; warps of a block
constexpr unsigned kAll = ~0u;              // all lanes of a warp

cudaStream_t stream_of(const assay_ctx* ctx) { return static_cast<cudaStream_t>(ctx->stream); }

[[maybe_unused]] int launch_status() {
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}

[[maybe_unused]] int multiprocessors() {
  int device = 0, count = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

__host__ __device__ constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Scratch on the device that goes back when it leaves its scope.
class Scratch {
 public:
  Scratch(assay_ctx* ctx, std::size_t bytes)
      : ctx_(ctx), data_(bytes > 0 ? ctx->alloc(ctx, bytes, 256, 1) : nullptr), bytes_(bytes) {}
  ~Scratch() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  Scratch(const Scratch&) = delete;
  bool failed() const { return bytes_ > 0 && data_ == nullptr; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  assay_ctx* ctx_;
  void* data_;
  std::size_t bytes_;
};

// A table of what the host knows and a kernel needs. A small one travels as a parameter of the
// launch, a large one in one copy.
template <std::size_t kInlineBytes>
struct InlineTable {
  const unsigned char* device;  // null: the bytes are here
  alignas(16) unsigned char bytes[kInlineBytes];

  template <class T>
  __device__ const T* at(std::uint32_t offset) const {
    return reinterpret_cast<const T*>((device != nullptr ? device : bytes) + offset);
  }
};

template <std::size_t kInlineBytes>
class InlineTableBuilder {
 public:
  template <class T>
  std::uint32_t add(const T* data, std::int64_t n) {
    const std::size_t at = (bytes_.size() + 15) / 16 * 16;
    bytes_.resize(at + static_cast<std::size_t>(n) * sizeof(T));
    if (n > 0) std::memcpy(bytes_.data() + at, data, static_cast<std::size_t>(n) * sizeof(T));
    return static_cast<std::uint32_t>(at);
  }
  template <class T>
  std::uint32_t add(const std::vector<T>& data) {
    return add(data.data(), static_cast<std::int64_t>(data.size()));
  }
  std::size_t scratch_bytes() const { return bytes_.size() <= kInlineBytes ? 0 : bytes_.size(); }

  // `scratch` holds scratch_bytes().
  void upload(const assay_ctx* ctx, const Scratch& scratch,
              InlineTable<kInlineBytes>& table) const {
    table.device = scratch.as<unsigned char>();
    if (table.device == nullptr) {
      std::copy(bytes_.begin(), bytes_.end(), table.bytes);
    } else {
      cudaMemcpyAsync(scratch.as<void>(), bytes_.data(), bytes_.size(), cudaMemcpyHostToDevice,
                      stream_of(ctx));
    }
  }
  InlineTable<kInlineBytes> upload(const assay_ctx* ctx, const Scratch& scratch) const {
    InlineTable<kInlineBytes> table{};
    upload(ctx, scratch, table);
    return table;
  }

 private:
  std::vector<unsigned char> bytes_;
};

// Over the block, in a fixed order; every thread gets the result. combine must be commutative.
template <class T, class Combine>
__device__ T block_reduce(T x, const Combine& combine) {
  __shared__ T of_warp[kMostWarps];
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    x = combine(x, __shfl_xor_sync(kAll, x, offset));
  __syncthreads();  // the result before has been read
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = x;
  __syncthreads();
  x = of_warp[0];
  for (unsigned w = 1; w < blockDim.x / kWarp; ++w) x = combine(x, of_warp[w]);
  return x;
}
[[maybe_unused]] __device__ double block_sum(double x) {
  return block_reduce(x, [](double a, double b) { return a + b; });
}

}  // namespace
