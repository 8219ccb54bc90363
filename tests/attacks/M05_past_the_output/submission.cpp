// attack: writes behind the end of an output, and before its beginning
// challenge: fused_softmax_topk
// cases: basic
// expect: WA | RE
// variants: behind before far
#include "target.h"

int attack(Call& call) {
  const int status = call.honest();
  auto* bytes = static_cast<unsigned char*>(call.outputs[0].data);
  witness();
#if ATTACK_VARIANT == 0
  bytes[call.outputs[0].bytes] ^= 0xff;
#elif ATTACK_VARIANT == 1
  bytes[-1] ^= 0xff;
#else
  std::memset(bytes + call.outputs[0].bytes, 0, 1 << 20);
#endif
  return status;
}
