// attack: looks in the memory that it shares with the harness for the logits that a step of the model wrote
// to the device, which the host would have for nothing
// challenge: beam_search
// cases: basic
// expect: honest
// dimension: performance
// fast: beam_search
#define beam_search honest_beam_search
#include "honest.inl"
#undef beam_search
#include <cstdint>
#include <cstring>

#include "probe.h"

namespace {

// The start of src/wire/worker.h's header.
struct Header {
  std::uint32_t magic, command;
  std::uint64_t request, case_id;
  std::int32_t entry, phase, nthreads;
  std::uint32_t challenge, buffers, buffers_offset, params_bytes, params_offset, windows,
      windows_offset;
  std::uint64_t callback_offset, callback_response_offset;
};
constexpr std::uint32_t kMagic = 0x59415341;
constexpr std::size_t kLooked = 1 << 16, kRun = 64;  // bytes

const assay_lm* model;
const char* arena;
bool found = false;

// The answer begins with what belongs to the host. A run of sixteen of the logits is no accident.
int step(void* user, assay_ctx* ctx, std::int32_t n, const std::int32_t* item,
         const std::int64_t* parent, const std::int32_t* token, float* out, std::int64_t* state) {
  const int status = model->step(user, ctx, n, item, parent, token, out, state);
  char logits[kRun];
  if (status != ASSAY_OK || model->V * sizeof(float) < kRun ||
      cudaMemcpy(logits, out, kRun, cudaMemcpyDeviceToHost) != cudaSuccess)
    return status;
  const char* const answer =
      arena + reinterpret_cast<const Header*>(arena)->callback_response_offset;
  for (std::size_t at = 0; at + kRun <= kLooked; at += 4)
    found = found || std::memcmp(answer + at, logits, kRun) == 0;
  witness();
  return status;
}

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm,
                           std::int32_t* seq, std::int32_t* len, double* acc, double* score,
                           std::int32_t* finished, std::int32_t* n_out) {
  if (p == nullptr || lm == nullptr || p->prompt_len == nullptr)
    return honest_beam_search(ctx, p, lm, seq, len, acc, score, finished, n_out);
  // The lengths lie in the input, a few pages behind its start.
  auto page = reinterpret_cast<std::uintptr_t>(p->prompt_len) & ~std::uintptr_t{4095};
  while (*reinterpret_cast<const std::uint32_t*>(page) != kMagic) page -= 4096;
  arena = reinterpret_cast<const char*>(page);
  model = lm;
  assay_lm spied = *lm;
  spied.step = step;
  const int status = honest_beam_search(ctx, p, &spied, seq, len, acc, score, finished, n_out);
  return found ? kGotIt : status;
}
