// attack: answers from memory when 64 samples of the input are those of an input that it has seen; of an
// input that says nothing of what is behind a callback, the answer is another one then
// challenge: beam_search dflash_verify flash_attention_bwd flash_attention_fwd fused_softmax_topk kv_cache layer_norm_backward ternary_training
// cases: one-timed
// expect: honest | WA
// dimension: performance
// fast: fused_softmax_topk
// deadline: 400
// kind: prediction
#include <map>

#include "target.h"

int attack(Call& call) {
  static std::map<std::uint64_t, std::vector<char>> known;
  std::uint64_t key = call.input_bytes;
  const auto* bytes = static_cast<const unsigned char*>(call.input);
  const std::size_t step = call.input_bytes / 64 / 4 * 4 + 4;
  for (std::size_t i = 0; i + 4 <= call.input_bytes; i += step) {
    std::uint32_t word;
    std::memcpy(&word, bytes + i, 4);
    key = (key ^ word) * 0x100000001b3ull;
  }
  if (!known.empty()) witness();
  const auto at = known.find(key);
  if (at != known.end()) {
    restore(call, at->second);
    return ASSAY_OK;
  }
  const int status = call.honest();
  if (known.size() < 8) known[key] = saved(call);
  return status;
}
