// What a challenge author implements on the untrusted side: adapter.cpp, which turns a case into
// typed calls of the submission's functions. It runs inside the sandboxed worker, next to the
// submission, so it holds no secret and nothing it reports is trusted: only the outputs count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "assay/abi.h"

namespace assay::worker {

class Call {
 public:
  virtual ~Call() = default;

  virtual assay_ctx* ctx() = 0;
  virtual std::int32_t entry() const = 0;  // CasePlan::entry
  virtual int phase() const = 0;           // 0 .. CasePlan::phases-1
  virtual const void* params() const = 0;  // CasePlan::params
  // NULL for null buffers. In device memory when ctx()->device >= 0, unless the plan keeps it on
  // the host. An adapter may do arithmetic on a device address but not dereference it.
  virtual void* buffer(int handle) = 0;
  virtual std::size_t bytes(int handle) const = 0;
  virtual void* symbol(const char* name) = 0;  // the submission's function, or NULL
  // A slot that survives from phase to phase of one case and is NULL at the start of each case.
  virtual void*& state() = 0;
  // Sends a request to the harness's CallbackServer. The server writes response_bytes + bulk_bytes
  // in one piece; the first part is copied to `response`, the rest to `bulk`, which may be device
  // memory. If possible, the harness writes the bulk itself while the worker is stopped, so that
  // large answers cost the call no time. The request and the whole response are at most
  // kCallbackBytes each.
  virtual std::int32_t callback(std::uint32_t kind, const void* request, std::size_t request_bytes,
                                void* response, std::size_t response_bytes, void* bulk = nullptr,
                                std::size_t bulk_bytes = 0) = 0;

  // memcpy and memset for host or device memory, ctx->alloc's included.
  virtual void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  virtual void fill(void* to, unsigned char value, std::size_t bytes) {
    std::memset(to, value, bytes);
  }

  template <class T>
  const T& params_as() const {
    return *static_cast<const T*>(params());
  }
  template <class T>
  T* as(int handle) {
    return static_cast<T*>(buffer(handle));
  }
  // The submission's function with the type of its prototype: call.fn(&::ln_backward,
  // "ln_backward")
  template <class F>
  F* fn(const char* name) {
    return reinterpret_cast<F*>(symbol(name));
  }
};

inline constexpr std::size_t kCallbackBytes = std::size_t{16} << 20;

// Runs one phase and returns the submission's ASSAY_* code. A missing optional function is
// ASSAY_ENOTSUP.
using Adapter = std::int32_t (*)(Call&);

}  // namespace assay::worker

// In adapter.cpp: ASSAY_ADAPTER(layer_norm_backward, run)
#define ASSAY_ADAPTER(name, function)                                \
  namespace assay::worker {                                          \
  std::int32_t adapter_##name(Call& call) { return function(call); } \
  }
