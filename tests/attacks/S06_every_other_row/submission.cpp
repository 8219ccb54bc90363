// attack: computes every other row, in the hope that those are the rows that are judged
// challenge: ternary_training flash_attention_fwd
// cases: one-timed
// expect: WA
// fast: none
// kind: prediction
#include "target.h"

int attack(Call& call) {
  std::vector<std::vector<char>> before;
  for (const Output& o : call.outputs)
    before.push_back({static_cast<char*>(o.data), static_cast<char*>(o.data) + o.bytes});
  const int status = call.honest();
  for (std::size_t i = 0; i < call.outputs.size();
       ++i) {  // as if the second half had not been computed
    const std::size_t half = call.outputs[i].bytes / 2;
    std::memcpy(static_cast<char*>(call.outputs[i].data) + half, before[i].data() + half,
                call.outputs[i].bytes - half);
  }
  witness();
  return status;
}
