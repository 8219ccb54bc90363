#include "assay/worker.h"
#include "flash.h"

namespace assay::flash_attention_fwd {
namespace {

std::int32_t run(worker::Call& call) {
  const Params& params = call.params_as<Params>();
  const void *q = call.buffer(kQ), *k = call.buffer(kK), *v = call.buffer(kV);
  void* o = call.buffer(kO);
  auto* lse = call.as<float>(kLse);
  if (params.extra == 0) {
    return call.fn<decltype(fa_forward)>("fa_forward")(call.ctx(), &params.p, q, k, v, o, lse);
  }
  auto* forward = call.fn<decltype(fa_forward_extra)>("fa_forward_extra");
  if (forward == nullptr) return ASSAY_ENOTSUP;
  const fa_extra extra{sizeof(fa_extra), params.softcap, call.as<float>(kAlibi), call.as<float>(kSink),
                       call.as<std::int64_t>(kKvLen)};
  return forward(call.ctx(), &params.p, &extra, q, k, v, o, lse);
}

}  // namespace
}  // namespace assay::flash_attention_fwd

ASSAY_ADAPTER(flash_attention_fwd, flash_attention_fwd::run)
