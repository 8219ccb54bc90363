#include "assay/worker.h"
#include "call.h"

namespace assay::ternary_training {
namespace {

std::int32_t run_train(worker::Call& call, const Params& p) {
  return call.fn<decltype(tt_train)>("tt_train")(call.ctx(), &p.config,
                                                 call.as<std::uint16_t>(train::kDocs), p.n_docs,
                                                 &p.budget, call.buffer(train::kBlob));
}

std::int32_t run_logits(worker::Call& call, const Params& p) {
  return call.fn<decltype(tt_logits)>("tt_logits")(
      call.ctx(), &p.config, call.buffer(logits::kBlob), call.as<std::uint16_t>(logits::kDocs),
      p.n_docs, call.as<float>(logits::kLogits));
}

std::int32_t run(worker::Call& call) {
  const auto& p = call.params_as<Params>();
  switch (call.entry()) {
    case kQuantize:
      return call.fn<decltype(tt_quantize)>("tt_quantize")(
          call.ctx(), p.rows, p.cols, call.as<float>(quantize::kW),
          call.as<std::uint8_t>(quantize::kBlocks));
    case kDequantize:
      return call.fn<decltype(tt_dequantize)>("tt_dequantize")(
          call.ctx(), p.rows, p.cols, call.as<std::uint8_t>(dequantize::kBlocks),
          call.as<float>(dequantize::kW));
    case kLinear:
      return call.fn<decltype(tt_linear)>("tt_linear")(
          call.ctx(), p.M, p.rows, p.cols, call.as<float>(linear::kX),
          call.as<std::uint8_t>(linear::kBlocks), call.as<float>(linear::kDy),
          call.as<float>(linear::kY), call.as<float>(linear::kDx), call.as<float>(linear::kDw));
    case kBlobBytes:
      *call.as<std::int64_t>(blob_bytes::kBytes) =
          static_cast<std::int64_t>(call.fn<decltype(tt_blob_bytes)>("tt_blob_bytes")(&p.config));
      return ASSAY_OK;
    case kTrain: return run_train(call, p);
    case kLogits: return run_logits(call, p);
    default: return ASSAY_EINTERNAL;
  }
}

}  // namespace
}  // namespace assay::ternary_training

ASSAY_ADAPTER(ternary_training, ternary_training::run)
