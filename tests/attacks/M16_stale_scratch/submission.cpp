// attack: takes scratch and answers with what it finds there, as if it were the answer of the call before
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: WA
#include "target.h"

int attack(Call& call) {
  static int calls = 0;
  std::size_t bytes = 0;
  for (const Output& o : call.outputs) bytes += o.bytes;
  auto* scratch = static_cast<char*>(call.ctx->alloc(call.ctx, bytes, 64, 0));
  if (scratch == nullptr) return ASSAY_ENOMEM;
  int status = ASSAY_OK;
  if (calls++ == 0) {
    status = call.honest();
    const std::vector<char> kept = saved(call);
    std::memcpy(scratch, kept.data(), bytes);
  } else {
    restore(call, {scratch, scratch + bytes});
    witness();
  }
  call.ctx->free(call.ctx, scratch);
  return status;
}
