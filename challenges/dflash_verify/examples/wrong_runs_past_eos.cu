// fails: eos_mid
// The end of sequence is not looked for among accepted tokens.
#include "around_accept.cuh"

static int answer(Acceptance call) {
  call.eos = nullptr;
  return call.naive();
}
