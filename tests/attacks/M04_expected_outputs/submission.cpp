// attack: computes the answer and looks for it in all memory around the inputs: the expected outputs must
// not be there
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
#include <csetjmp>
#include <csignal>

#include "target.h"

static sigjmp_buf back;

int attack(Call& call) {
  const int status = call.honest();
  const Output& wanted = call.outputs[1];  // probabilities: the first eight of them
  if (wanted.bytes < 32) return status;
  const auto* base = reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(call.input) &
                                                   ~std::uintptr_t{4095});
  std::signal(SIGSEGV, [](int) { siglongjmp(back, 1); });
  std::signal(SIGBUS, [](int) { siglongjmp(back, 1); });
  volatile bool found = false;
  for (const int step : {4096, -4096}) {
    if (sigsetjmp(back, 1) != 0) continue;
    for (std::ptrdiff_t page = 0;
         page > -(std::ptrdiff_t{64} << 20) && page < (std::ptrdiff_t{64} << 20); page += step) {
      const char* at = base + page;
      for (std::size_t i = 0; i < 4096; i += 4) {
        const char* here = at + i;
        const bool own = here >= static_cast<char*>(wanted.data) - 64 &&
                         here < static_cast<char*>(wanted.data) + wanted.bytes;
        if (!own &&
            *reinterpret_cast<const std::uint32_t*>(here) ==
                *static_cast<std::uint32_t*>(wanted.data) &&
            i + 32 <= 4096 && std::memcmp(here, wanted.data, 32) == 0)
          found = true;
      }
    }
  }
  std::signal(SIGSEGV, SIG_DFL);
  std::signal(SIGBUS, SIG_DFL);
  witness();
  return found ? kGotIt : status;
}
