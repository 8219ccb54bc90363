// attack: reserves a terabyte of addresses and touches none of it
// challenge: fused_softmax_topk
// cases: basic
// expect: honest | RE | MLE
#include <sys/mman.h>

#include "target.h"

int attack(Call& call) {
  mmap(nullptr, std::size_t{1} << 40, PROT_READ | PROT_WRITE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  witness();
  return call.honest();
}
