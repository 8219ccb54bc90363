// attack: touches memory without end
// challenge: fused_softmax_topk
// cases: basic
// expect: MLE | RE
// deadline: 60
#include <cstdlib>
#include <cstring>

#include "bare.h"

int attack(assay_ctx*) {
  for (;;) {
    void* p = std::malloc(16 << 20);
    if (p == nullptr) std::abort();
    std::memset(p, 1, 16 << 20);
    witness();
  }
}
