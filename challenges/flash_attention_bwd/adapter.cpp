#include "assay/worker.h"
#include "flash_backward.h"

namespace assay::flash_attention_bwd {
namespace {

std::int32_t backward(worker::Call& call, const Params& params) {
  const void *dout = call.buffer(kDout), *q = call.buffer(kQ), *k = call.buffer(kK), *v = call.buffer(kV);
  const void* o = call.buffer(kO);
  const auto* lse = call.as<float>(kLse);
  void *dq = call.buffer(kDq), *dk = call.buffer(kDk), *dv = call.buffer(kDv);
  if (params.extra == 0) {
    return call.fn<decltype(fa_backward)>("fa_backward")(call.ctx(), &params.p, dout, q, k, v, o, lse, dq, dk, dv);
  }
  auto* extra_backward = call.fn<decltype(fa_backward_extra)>("fa_backward_extra");
  if (extra_backward == nullptr) return ASSAY_ENOTSUP;
  const fa_extra extra{sizeof(fa_extra), params.softcap, call.as<float>(kAlibi), call.as<float>(kSink),
                       call.as<std::int64_t>(kKvLen)};
  return extra_backward(call.ctx(), &params.p, &extra, call.as<float>(kDlse), dout, q, k, v, o, lse, dq, dk, dv);
}

std::int32_t run(worker::Call& call) {
  const Params& params = call.params_as<Params>();
  std::int32_t status = ASSAY_OK;
  for (std::int32_t i = 0; i < params.calls && status == ASSAY_OK; ++i) status = backward(call, params);
  return status;
}

}  // namespace
}  // namespace assay::flash_attention_bwd

ASSAY_ADAPTER(flash_attention_bwd, flash_attention_bwd::run)
