#include "assay/worker.h"
#include "call.h"

namespace assay::layer_norm_backward {
namespace {

std::int32_t forward(worker::Call& call, const ln_params& p, const void* x, void* cache) {
  return call.fn<decltype(ln_forward)>("ln_forward")(call.ctx(), &p, x, call.as<float>(kGamma),
                                                     call.as<float>(kBeta), call.buffer(kY), cache);
}

std::int32_t backward(worker::Call& call, const ln_params& p) {
  return call.fn<decltype(ln_backward)>("ln_backward")(
      call.ctx(), &p, call.buffer(kDy), call.buffer(kX), call.as<float>(kGamma),
      call.buffer(kCache), call.buffer(kDx), call.as<float>(kDgamma), call.as<float>(kDbeta));
}

// Calls f after other calls that succeeded. If it fails for lack of memory it is repeated, because
// the output of the others remains.
template <class F>
std::int32_t until_memory(const F& f) {
  const std::int32_t status = f();
  return status == ASSAY_ENOMEM ? f() : status;
}

// A forward of another input with a separate cache must not disturb the first one's.
std::int32_t interpose(worker::Call& call, const ln_params& p, std::size_t cache_bytes) {
  assay_ctx* ctx = call.ctx();
  void* cache = nullptr;
  // Tries twice, because one allocation of the case may be refused, and this one is not the
  // submission's.
  for (int i = 0; i < 2 && cache == nullptr; ++i)
    cache = ctx->alloc(ctx, cache_bytes + 1, 256, ctx->device >= 0 ? 1 : 0);
  if (cache == nullptr) return ASSAY_ENOMEM;
  const std::int32_t status =
      until_memory([&] { return forward(call, p, call.buffer(kOtherX), cache); });
  ctx->free(ctx, cache);
  return status;
}

std::int32_t setup(worker::Call& call, const Params& params) {
  if (params.mode == kRms || params.mode == kInvalidBackward) return ASSAY_OK;
  if (params.mode == kInvalidForward)
    return forward(call, params.p, call.buffer(kX), call.buffer(kCache));
  const std::size_t bytes = call.fn<decltype(ln_cache_bytes)>("ln_cache_bytes")(&params.p);
  *call.as<std::int64_t>(kCacheBytes) = static_cast<std::int64_t>(bytes);
  if (bytes > call.bytes(kCache)) return ASSAY_ECAP;
  if (params.mode == kOlderCache) {
    const std::int32_t status = forward(call, params.p, call.buffer(kX), call.buffer(kCache));
    return status == ASSAY_OK ? interpose(call, params.p, bytes) : status;
  }
  return forward(call, params.p, call.buffer(kX), call.buffer(kCache));
}

std::int32_t run(worker::Call& call) {
  const auto& params = call.params_as<Params>();
  if (call.phase() == 0) return setup(call, params);
  switch (params.mode) {
    case kTwice: {
      const std::int32_t status = backward(call, params.p);
      return status == ASSAY_OK ? until_memory([&] { return backward(call, params.p); }) : status;
    }
    case kResidual: {
      auto* f = call.fn<decltype(ln_backward_residual)>("ln_backward_residual");
      return f != nullptr ? f(call.ctx(), &params.p, call.buffer(kDy), call.buffer(kX),
                              call.as<float>(kGamma), call.buffer(kCache), call.buffer(kDres),
                              call.buffer(kDx), call.as<float>(kDgamma), call.as<float>(kDbeta))
                          : ASSAY_ENOTSUP;
    }
    case kRms: {
      auto* f = call.fn<decltype(rms_backward)>("rms_backward");
      return f != nullptr ? f(call.ctx(), &params.p, call.buffer(kDy), call.buffer(kX),
                              call.as<float>(kGamma), call.buffer(kDx), call.as<float>(kDgamma))
                          : ASSAY_ENOTSUP;
    }
    case kInvalidBackward:
      // An answer whose cache has no bytes may be given NULL.
      if (call.buffer(kCache) == nullptr &&
          call.fn<decltype(ln_cache_bytes)>("ln_cache_bytes")(&params.p) == 0)
        return ASSAY_EINVAL;
      return backward(call, params.p);
    default: return backward(call, params.p);
  }
}

}  // namespace
}  // namespace assay::layer_norm_backward

ASSAY_ADAPTER(layer_norm_backward, layer_norm_backward::run)
