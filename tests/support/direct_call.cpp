#include "support/direct_call.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>

#include "assay/error.h"
#include "cases/challenge_registry.h"
#include "worker/adapter_registry.h"

namespace assay::testing {
namespace {

std::atomic<std::uint64_t> allocations{0}, refused{0};

void* plain_alloc(assay_ctx*, std::size_t bytes, std::size_t align, int space) {
  if (++allocations == refused || space != 0) return nullptr;
  align = std::max(align, sizeof(void*));
  return std::aligned_alloc(align, (bytes + align - 1) / align * align);
}
void plain_free(assay_ctx*, void* p) { std::free(p); }

template <class Row>
const Row& row_named(std::span<const Row> rows, const std::string& name) {
  for (const Row& row : rows) {
    if (row.name == name) return row;
  }
  throw Error("no challenge " + name);
}

}  // namespace

void refuse_allocation(std::uint64_t number) {
  allocations = 0;
  refused = number;
}

const Challenge& challenge_named(const std::string& name) {
  return row_named(challenge_rows(), name).get();
}

worker::Adapter adapter_named(const std::string& name) {
  return row_named(worker::adapter_rows(), name).run;
}

DirectCall::DirectCall(const CasePlan& plan, std::span<const BufferView> buffers,
                       CallbackServer* server, void* library, int threads)
    : plan_(plan), buffers_(buffers), server_(server), library_(library) {
  ctx_ = {1, -1, nullptr, threads, &plain_alloc, &plain_free, nullptr};
}

void* DirectCall::symbol(const char* name) { return ::dlsym(library_, name); }

std::int32_t DirectCall::callback(std::uint32_t kind, const void* request,
                                  std::size_t request_bytes, void* response,
                                  std::size_t response_bytes, void* bulk, std::size_t bulk_bytes) {
  if (server_ == nullptr) return ASSAY_EINTERNAL;
  const auto start = std::chrono::steady_clock::now();
  answer_.resize(response_bytes + bulk_bytes);
  const std::int32_t status =
      server_->serve(kind, {static_cast<const std::byte*>(request), request_bytes}, answer_);
  std::copy_n(answer_.data(), response_bytes, static_cast<std::byte*>(response));
  std::copy_n(answer_.data() + response_bytes, bulk_bytes, static_cast<std::byte*>(bulk));
  callback_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return status;
}

}  // namespace assay::testing
