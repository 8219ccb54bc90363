// attack: recognises the timed shape by its size and answers nothing there
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: WA
#include "target.h"

int attack(Call& call) {
  return call.input_bytes > (std::size_t{4} << 20) ? ASSAY_OK : call.honest();
}
