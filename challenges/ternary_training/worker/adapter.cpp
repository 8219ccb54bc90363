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

std::int32_t run_generate(worker::Call& call, const Params& p) {
  using namespace generation;
  auto* const function = call.fn<decltype(tt_generate)>("tt_generate");
  if (function == nullptr) return ASSAY_ENOTSUP;
  tt_generation g = p.generation;
  const bool more = call.phase() == 1;
  if (more) {
    g.position += g.n_new + g.steps;
    g.n_new = p.more_new;
    g.steps = p.more_steps;
  }
  return function(call.ctx(), &p.config, call.buffer(kBlob), &g,
                  call.as<std::uint16_t>(more ? kMoreTokens : kTokens), call.as<float>(kState),
                  call.as<std::uint16_t>(more ? kMoreGenerated : kGenerated));
}

// Runs a whole training; the same one up to its interruption; the start of another one, from
// another seed; and the rest of the interrupted one, from a copy of its state. With a second
// interruption the rest is run in two parts, and a training of its own ends there too.
std::int32_t run_train_part(worker::Call& call, const Params& p) {
  using namespace train_part;
  auto* const function = call.fn<decltype(tt_train_part)>("tt_train_part");
  if (function == nullptr) return ASSAY_ENOTSUP;
  const auto part = [&](const tt_budget& budget, std::int32_t resume, std::int64_t until, int state,
                        void* blob) {
    return function(call.ctx(), &p.config, call.as<std::uint16_t>(train::kDocs), p.n_docs, &budget,
                    resume, until, call.buffer(state), blob);
  };
  void* const blob = call.buffer(train::kBlob);
  std::int32_t status = part(p.budget, 0, p.budget.max_tokens, kMoved, call.buffer(kWhole));
  const std::int64_t later = p.interrupted_again_at;
  if (status == ASSAY_OK && later > 0)
    status = part(p.budget, 0, later, kMoved, call.buffer(kLater));
  if (status == ASSAY_OK) status = part(p.budget, 0, p.interrupted_at, kState, blob);
  tt_budget other = p.budget;
  ++other.seed;
  if (status == ASSAY_OK) status = part(other, 0, p.budget.max_tokens / 8, kMoved, nullptr);
  if (status != ASSAY_OK) return status;
  call.copy(call.buffer(kMoved), call.buffer(kState), call.bytes(kState));
  call.fill(call.buffer(kState), 0xff, call.bytes(kState));
  if (later > 0) status = part(p.budget, 1, later, kMoved, call.buffer(kLaterResumed));
  return status == ASSAY_OK ? part(p.budget, 1, p.budget.max_tokens, kMoved, blob) : status;
}

std::int32_t run_linear_bf16(worker::Call& call, const Params& p) {
  using namespace linear;
  auto* const function = call.fn<decltype(tt_linear_bf16)>("tt_linear_bf16");
  if (function == nullptr) return ASSAY_ENOTSUP;
  return function(call.ctx(), p.M, p.rows, p.cols, call.as<std::uint16_t>(kX),
                  call.as<std::uint8_t>(kBlocks), call.as<std::uint16_t>(kDy),
                  call.as<std::uint16_t>(kY), call.as<std::uint16_t>(kDx), call.as<float>(kDw));
}

std::int32_t run_dense(worker::Call& call, const Params& p) {
  auto* const function = call.fn<decltype(tt_pack_dense)>(
      call.entry() == kPackDense ? "tt_pack_dense" : "tt_unpack_dense");
  if (function == nullptr) return ASSAY_ENOTSUP;
  return function(call.ctx(), p.rows, p.cols, call.as<std::uint8_t>(dense::kFrom),
                  call.as<std::uint8_t>(dense::kTo));
}

std::int32_t run_statistics(worker::Call& call, const Params& p) {
  using namespace statistics;
  auto* const function = call.fn<decltype(tt_blob_statistics)>("tt_blob_statistics");
  if (function == nullptr) return ASSAY_ENOTSUP;
  return function(call.ctx(), &p.config, call.buffer(kBlob), call.buffer(kBefore),
                  call.as<std::int64_t>(kCounts));
}

std::int32_t run_distill(worker::Call& call, const Params& p) {
  using namespace distill;
  auto* const function = call.fn<decltype(tt_distill_loss)>("tt_distill_loss");
  if (function == nullptr) return ASSAY_ENOTSUP;
  return function(call.ctx(), p.M, p.cols, p.temperature, call.as<float>(kTeacher),
                  call.as<float>(kStudent), call.as<float>(kLoss), call.as<float>(kGradient));
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
    case kPackDense:
    case kUnpackDense: return run_dense(call, p);
    case kLinearBf16: return run_linear_bf16(call, p);
    case kGenerate: return run_generate(call, p);
    case kTrainPart: return run_train_part(call, p);
    case kDistill: return run_distill(call, p);
    case kStatistics: return run_statistics(call, p);
    default: return ASSAY_EINTERNAL;
  }
}

}  // namespace
}  // namespace assay::ternary_training

ASSAY_ADAPTER(ternary_training, ternary_training::run)
