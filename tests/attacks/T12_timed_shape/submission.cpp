// attack: recognises the timed shape by its size and answers nothing there
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: WA
#include "target.h"

int attack(Call& call) {
  if (call.input_bytes <= (std::size_t{4} << 20)) return call.honest();
  witness();
  return ASSAY_OK;
}
