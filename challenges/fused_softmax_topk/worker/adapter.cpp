#include "assay/worker.h"
#include "call.h"

namespace assay::fused_softmax_topk {
namespace {

std::int32_t run(worker::Call& call) {
  const auto& params = call.params_as<Params>();
  const void* logits = call.buffer(kLogits);
  auto* idx = call.as<std::int32_t>(kIdx);
  auto* prob = call.as<float>(kProb);
  auto* lse = call.as<float>(kLse);
  switch (call.entry()) {
    case kTopK:
      return call.fn<decltype(softmax_topk)>("softmax_topk")(call.ctx(), &params.p, logits, idx,
                                                             prob, lse);
    case kLogTopK: {
      auto* f = call.fn<decltype(log_softmax_topk)>("log_softmax_topk");
      return f != nullptr ? f(call.ctx(), &params.p, logits, idx, prob, lse) : ASSAY_ENOTSUP;
    }
    case kTopP: {
      auto* f = call.fn<decltype(softmax_topk_top_p)>("softmax_topk_top_p");
      return f != nullptr ? f(call.ctx(), &params.p, logits, params.top_p, idx, prob, lse,
                              call.as<std::int32_t>(kCount))
                          : ASSAY_ENOTSUP;
    }
    default: return ASSAY_EINTERNAL;
  }
}

}  // namespace
}  // namespace assay::fused_softmax_topk

ASSAY_ADAPTER(fused_softmax_topk, fused_softmax_topk::run)
