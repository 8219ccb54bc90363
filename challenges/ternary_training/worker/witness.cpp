#include "assay/witness.h"

#include "implementation.h"
#include "worker/call.h"

ASSAY_WITNESS()

namespace assay::ternary_training {
namespace {

using witness::product;
using witness::Record;

constexpr std::int64_t kWeights = 128, kBlock = 34, kDense = 28;

// Bytes of that many rows in blocks; kNone if columns do not fill whole blocks.
std::int64_t block_bytes(std::int64_t rows, std::int64_t cols, std::int64_t block) {
  if (cols < 0 || cols % kWeights != 0) return witness::kNone;
  return product(product(rows, cols / kWeights), block);
}

Params sizes(std::int64_t M, std::int64_t rows, std::int64_t cols) {
  Params params;
  params.M = M;
  params.rows = rows;
  params.cols = cols;
  return params;
}

// A conversion of one matrix to another form.
void record_conversion(Entry entry, std::int64_t rows, std::int64_t cols, int from_handle,
                       const void* from, std::int64_t bytes, int to_handle, const void* to) {
  Record call(entry);
  call.params(sizes(0, rows, cols));
  call.array(from_handle, from, bytes);
  call.array(to_handle, to, 0);
}

void record_linear(Entry entry, std::int64_t M, std::int64_t rows, std::int64_t cols,
                   std::int64_t element, const void* x, const void* blocks, const void* dy,
                   const void* y, const void* dx, const void* dw) {
  using namespace linear;
  Record call(entry);
  call.params(sizes(M, rows, cols));
  call.array(kX, x, product(product(M, cols), element));
  call.array(kBlocks, blocks, block_bytes(rows, cols, kBlock));
  call.array(kDy, dy, product(product(M, rows), element));
  call.array(kY, y, 0);
  call.array(kDx, dx, 0);
  call.array(kDw, dw, 0);
}

// `bytes`: size of a blob according to the implementation, which the tests allocate by.
void record_statistics(const tt_config* config, std::size_t bytes, const void* blob,
                       const void* before, const void* counts) {
  using namespace statistics;
  Record call(kStatistics);
  if (config == nullptr || bytes == 0) return call.strange();
  Params params;
  params.config = *config;
  call.params(params);
  call.array(kBlob, blob, static_cast<std::int64_t>(bytes));
  call.array(kBefore, before, static_cast<std::int64_t>(bytes));
  call.array(kCounts, counts, 0);
}

}  // namespace
}  // namespace assay::ternary_training

using namespace assay::ternary_training;

extern "C" size_t tt_blob_bytes(const tt_config* config) {
  {
    assay::witness::Record call(kBlobBytes);
    if (config == nullptr) {
      call.strange();
    } else {
      Params params;
      params.config = *config;
      call.params(params);
    }
  }
  return ASSAY_IMPLEMENTATION(tt_blob_bytes)(config);
}

extern "C" int tt_quantize(assay_ctx* ctx, int64_t rows, int64_t cols, const float* w,
                           uint8_t* blocks) {
  record_conversion(kQuantize, rows, cols, quantize::kW, w, product(product(rows, cols), 4),
                    quantize::kBlocks, blocks);
  return ASSAY_IMPLEMENTATION(tt_quantize)(ctx, rows, cols, w, blocks);
}

extern "C" int tt_dequantize(assay_ctx* ctx, int64_t rows, int64_t cols, const uint8_t* blocks,
                             float* w) {
  record_conversion(kDequantize, rows, cols, dequantize::kBlocks, blocks,
                    block_bytes(rows, cols, kBlock), dequantize::kW, w);
  return ASSAY_IMPLEMENTATION(tt_dequantize)(ctx, rows, cols, blocks, w);
}

extern "C" int tt_linear(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols, const float* x,
                         const uint8_t* blocks, const float* dy, float* y, float* dx,
                         float* dw_latent) {
  record_linear(kLinear, M, rows, cols, 4, x, blocks, dy, y, dx, dw_latent);
  return ASSAY_IMPLEMENTATION(tt_linear)(ctx, M, rows, cols, x, blocks, dy, y, dx, dw_latent);
}

extern "C" int tt_linear_bf16(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols,
                              const uint16_t* x, const uint8_t* blocks, const uint16_t* dy,
                              uint16_t* y, uint16_t* dx, float* dw_latent) {
  record_linear(kLinearBf16, M, rows, cols, 2, x, blocks, dy, y, dx, dw_latent);
  return ASSAY_IMPLEMENTATION(tt_linear_bf16)(ctx, M, rows, cols, x, blocks, dy, y, dx, dw_latent);
}

extern "C" int tt_pack_dense(assay_ctx* ctx, int64_t rows, int64_t cols, const uint8_t* blocks,
                             uint8_t* dense_blocks) {
  record_conversion(kPackDense, rows, cols, dense::kFrom, blocks, block_bytes(rows, cols, kBlock),
                    dense::kTo, dense_blocks);
  return ASSAY_IMPLEMENTATION(tt_pack_dense)(ctx, rows, cols, blocks, dense_blocks);
}

extern "C" int tt_unpack_dense(assay_ctx* ctx, int64_t rows, int64_t cols,
                               const uint8_t* dense_blocks, uint8_t* blocks) {
  record_conversion(kUnpackDense, rows, cols, dense::kFrom, dense_blocks,
                    block_bytes(rows, cols, kDense), dense::kTo, blocks);
  return ASSAY_IMPLEMENTATION(tt_unpack_dense)(ctx, rows, cols, dense_blocks, blocks);
}

extern "C" int tt_blob_statistics(assay_ctx* ctx, const tt_config* config, const void* blob,
                                  const void* before, int64_t* counts) {
  const std::size_t bytes = config == nullptr ? 0 : ASSAY_IMPLEMENTATION(tt_blob_bytes)(config);
  record_statistics(config, bytes, blob, before, counts);
  return ASSAY_IMPLEMENTATION(tt_blob_statistics)(ctx, config, blob, before, counts);
}

// Not recorded; these calls are only passed on. A model's result may depend on a rounding, so no
// tolerance holds for every blob that tests can make; and a training has no single right answer.
extern "C" int tt_train(assay_ctx* ctx, const tt_config* config, const uint16_t* docs,
                        int64_t n_docs, const tt_budget* budget, void* blob) {
  return ASSAY_IMPLEMENTATION(tt_train)(ctx, config, docs, n_docs, budget, blob);
}

extern "C" int tt_train_part(assay_ctx* ctx, const tt_config* config, const uint16_t* docs,
                             int64_t n_docs, const tt_budget* budget, int32_t resume, int64_t until,
                             void* state, void* blob) {
  return ASSAY_IMPLEMENTATION(tt_train_part)(ctx, config, docs, n_docs, budget, resume, until,
                                             state, blob);
}

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* config, const void* blob,
                         const uint16_t* docs, int64_t n_docs, float* logits) {
  return ASSAY_IMPLEMENTATION(tt_logits)(ctx, config, blob, docs, n_docs, logits);
}

extern "C" int tt_generate(assay_ctx* ctx, const tt_config* config, const void* blob,
                           const tt_generation* generation, const uint16_t* tokens, float* state,
                           uint16_t* generated) {
  return ASSAY_IMPLEMENTATION(tt_generate)(ctx, config, blob, generation, tokens, state, generated);
}

extern "C" int tt_distill_loss(assay_ctx* ctx, int64_t M, int64_t V, float temperature,
                               const float* teacher, const float* student, float* loss,
                               float* gradient) {
  return ASSAY_IMPLEMENTATION(tt_distill_loss)(ctx, M, V, temperature, teacher, student, loss,
                                               gradient);
}
