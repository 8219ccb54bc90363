#include "assay/worker.h"
#include "call.h"

namespace assay::flash_attention_fwd {
namespace {

std::int32_t run(worker::Call& call) {
  const Params& params = call.params_as<Params>();
  const void *q = call.buffer(kQ), *k = call.buffer(kK), *v = call.buffer(kV);
  void* o = call.buffer(kO);
  auto* lse = call.as<float>(kLse);
  assay_ctx* ctx = call.ctx();
  if (params.entry == Entry::varlen) {
    auto* forward = call.fn<decltype(fa_forward_varlen)>("fa_forward_varlen");
    if (forward == nullptr) return ASSAY_ENOTSUP;
    const fa_varlen lengths{sizeof(fa_varlen), params.total_q, params.total_k,
                            call.as<std::int64_t>(kCuQ), call.as<std::int64_t>(kCuK)};
    return forward(ctx, &params.p, &lengths, q, k, v, o, lse);
  }
  if (params.entry == Entry::bias) {
    auto* forward = call.fn<decltype(fa_forward_bias)>("fa_forward_bias");
    if (forward == nullptr) return ASSAY_ENOTSUP;
    return forward(ctx, &params.p, &params.bias, call.as<float>(kBias), q, k, v, o, lse);
  }
  if (params.entry == Entry::fp8) {
    auto* forward = call.fn<decltype(fa_forward_fp8)>("fa_forward_fp8");
    if (forward == nullptr) return ASSAY_ENOTSUP;
    return forward(ctx, &params.p, call.as<float>(kScales), call.as<std::uint8_t>(kQ),
                   call.as<std::uint8_t>(kK), call.as<std::uint8_t>(kV), o, lse);
  }
  if (params.entry == Entry::plain)
    return call.fn<decltype(fa_forward)>("fa_forward")(ctx, &params.p, q, k, v, o, lse);
  auto* forward = call.fn<decltype(fa_forward_extra)>("fa_forward_extra");
  if (forward == nullptr) return ASSAY_ENOTSUP;
  const fa_extra extra{sizeof(fa_extra), params.softcap, call.as<float>(kAlibi),
                       call.as<float>(kSink), call.as<std::int64_t>(kKvLen)};
  return forward(ctx, &params.p, &extra, q, k, v, o, lse);
}

}  // namespace
}  // namespace assay::flash_attention_fwd

ASSAY_ADAPTER(flash_attention_fwd, flash_attention_fwd::run)
