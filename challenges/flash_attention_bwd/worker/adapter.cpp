#include "assay/worker.h"
#include "call.h"

namespace assay::flash_attention_bwd {
namespace {

std::int32_t backward(worker::Call& call, const Params& params) {
  const void *dout = call.buffer(kDout), *q = call.buffer(kQ), *k = call.buffer(kK),
             *v = call.buffer(kV);
  void* o = call.buffer(kO);
  auto* lse = call.as<float>(kLse);
  assay_ctx* ctx = call.ctx();
  void *dq = call.buffer(kDq), *dk = call.buffer(kDk), *dv = call.buffer(kDv);
  if (params.entry == Entry::varlen) {
    auto* varlen_backward = call.fn<decltype(fa_backward_varlen)>("fa_backward_varlen");
    if (varlen_backward == nullptr) return ASSAY_ENOTSUP;
    const fa_varlen lengths{sizeof(fa_varlen), params.total_q, params.total_k,
                            call.as<std::int64_t>(kCuQ), call.as<std::int64_t>(kCuK)};
    return varlen_backward(ctx, &params.p, &lengths, dout, q, k, v, o, lse, dq, dk, dv);
  }
  if (params.entry == Entry::bias) {
    auto* bias_backward = call.fn<decltype(fa_backward_bias)>("fa_backward_bias");
    if (bias_backward == nullptr) return ASSAY_ENOTSUP;
    return bias_backward(ctx, &params.p, &params.bias, call.as<float>(kBias), dout, q, k, v, o, lse,
                         dq, dk, dv, call.as<float>(kDbias));
  }
  if (params.entry == Entry::chained) {
    auto* forward = call.fn<decltype(fa_forward)>("fa_forward");
    if (forward == nullptr) return ASSAY_ENOTSUP;
    const std::int32_t status = forward(ctx, &params.p, q, k, v, o, lse);
    if (status != ASSAY_OK) return status;
  }
  if (params.entry != Entry::extra) {
    const auto plain = [&] {
      return call.fn<decltype(fa_backward)>("fa_backward")(ctx, &params.p, dout, q, k, v, o, lse,
                                                           dq, dk, dv);
    };
    const std::int32_t status = plain();
    return params.entry == Entry::chained && status == ASSAY_ENOMEM ? plain() : status;
  }
  auto* extra_backward = call.fn<decltype(fa_backward_extra)>("fa_backward_extra");
  if (extra_backward == nullptr) return ASSAY_ENOTSUP;
  const fa_extra extra{sizeof(fa_extra), params.softcap, call.as<float>(kAlibi),
                       call.as<float>(kSink), call.as<std::int64_t>(kKvLen)};
  return extra_backward(ctx, &params.p, &extra, call.as<float>(kDlse), dout, q, k, v, o, lse, dq,
                        dk, dv);
}

// A call that fails for lack of memory after a successful one is repeated: the output of the first
// call remains.
std::int32_t run(worker::Call& call) {
  const Params& params = call.params_as<Params>();
  std::int32_t status = backward(call, params);
  for (std::int32_t i = 1; i < params.calls && status == ASSAY_OK; ++i) {
    status = backward(call, params);
    if (status == ASSAY_ENOMEM) status = backward(call, params);
  }
  return status;
}

}  // namespace
}  // namespace assay::flash_attention_bwd

ASSAY_ADAPTER(flash_attention_bwd, flash_attention_bwd::run)
