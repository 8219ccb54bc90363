// attack: prints without end
// challenge: fused_softmax_topk
// cases: basic
// expect: OLE
// witness: verdict OLE
#include <cstring>

#include "bare.h"

int attack(assay_ctx*) {
  static char text[65536];
  std::memset(text, 'x', sizeof text);
  for (;;) (void)!write(1, text, sizeof text);
}
