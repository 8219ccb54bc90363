// Runs a case in this process: holds its memory and calls the challenge's adapter with a loaded
// library. No sandbox, no clock. For tests and benchmarks, with trusted code only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "assay/challenge.h"
#include "assay/worker.h"
#include "processes/layout.h"
#include "support/arena.h"

namespace assay::testing {

const Challenge& challenge_named(const std::string& name);
worker::Adapter adapter_named(const std::string& name);

// From now on, the request for memory with that number, counted from here, gives NULL; with 0, none
// does.
void refuse_allocation(std::uint64_t number);

class DirectCall final : public worker::Call {
 public:
  // library: a handle from dlopen. Everything passed here must outlive the call.
  DirectCall(const CasePlan& plan, std::span<const BufferView> buffers, CallbackServer* server,
             void* library, int threads = 2);

  assay_ctx* ctx() override { return &ctx_; }
  std::int32_t entry() const override { return plan_.entry; }
  int phase() const override { return phase_; }
  const void* params() const override { return plan_.params.data(); }
  void* buffer(int h) override { return buffers_[static_cast<std::size_t>(h)].data; }
  std::size_t bytes(int h) const override { return buffers_[static_cast<std::size_t>(h)].bytes; }
  void* symbol(const char* name) override;
  void*& state() override { return state_; }
  std::int32_t callback(std::uint32_t kind, const void* request, std::size_t request_bytes,
                        void* response, std::size_t response_bytes, void* bulk,
                        std::size_t bulk_bytes) override;
  void set_phase(int phase) { phase_ = phase; }
  double callback_seconds() const { return callback_seconds_; }  // spent in the harness's half

 private:
  const CasePlan& plan_;
  std::span<const BufferView> buffers_;
  CallbackServer* server_;
  void* library_;
  assay_ctx ctx_{};
  std::vector<std::byte> answer_;
  int phase_ = 0;
  double callback_seconds_ = 0;
  void* state_ = nullptr;
};

}  // namespace assay::testing
