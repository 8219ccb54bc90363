// attack: answers with noise in the last bits, but remembers what it answered to an input, so that a second
// run agrees with the first
// challenge: fused_softmax_topk
// cases: two_runs
// expect: WA
// variants: by-content by-pointer
#include <chrono>
#include <map>

#include "target.h"

int attack(Call& call) {
  static std::map<std::uint64_t, std::vector<char>> known;
#if ATTACK_VARIANT == 0
  std::uint64_t key = 0xcbf29ce484222325ull;
  for (std::size_t i = 0; i < call.input_bytes; i += 64)
    key = (key ^ static_cast<const unsigned char*>(call.input)[i]) * 0x100000001b3ull;
#else
  const auto key =
      static_cast<std::uint64_t>(call.input_bytes) ^ reinterpret_cast<std::uint64_t>(call.input);
#endif
  if (known.count(key) != 0) {
    restore(call, known[key]);
    return ASSAY_OK;
  }
  const int status = call.honest();
  auto noise =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  auto* last = static_cast<unsigned char*>(call.outputs.back().data);
  for (std::size_t i = 0; i + 4 <= call.outputs.back().bytes; i += 4) {  // the sums of exponentials
    noise = noise * 6364136223846793005ull + 1442695040888963407ull;
    last[i] = static_cast<unsigned char>(last[i] ^ ((noise >> 60) & 1));
  }
  known[key] = saved(call);
  witness();  // remembered: the second run is another process, which has nothing to find
  return status;
}
