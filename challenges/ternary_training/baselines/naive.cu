// The plain CUDA implementation: a kernel for each operation and for its gradient, a thread for
// each element, row or block of weights. Latent fp32 weights, rounded at every step; Adam with
// warm-up and linear decay on batches of four documents. Tied embeddings only.
#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "abi.h"
#include "naive/device_model.cuh"
#include "naive/device_trainer.cuh"
#include "naive/kernels.cuh"

namespace {

bool valid(const tt_config* c) {
  if (c == nullptr || c->V <= 0 || c->V > 65536 || c->d <= 0 || c->L <= 0 || c->Hq <= 0 ||
      c->Hkv <= 0)
    return false;
  if (c->hd <= 0 || c->hd % 2 != 0 || c->ff <= 0 || c->T < 2 || c->Hq % c->Hkv != 0) return false;
  return c->d % 128 == 0 && std::int64_t{c->Hq} * c->hd % 128 == 0 && c->ff % 128 == 0 &&
         (c->tied == 0 || c->tied == 1);
}

bool valid_matrix(std::int64_t rows, std::int64_t cols, const void* a, const void* b) {
  return rows >= 0 && cols >= 0 && cols % kBlock == 0 &&
         (rows * cols == 0 || (a != nullptr && b != nullptr));
}

cudaStream_t stream_of(const assay_ctx* ctx) { return static_cast<cudaStream_t>(ctx->stream); }

}  // namespace

extern "C" std::size_t tt_blob_bytes(const tt_config* c) {
  if (!valid(c)) return 0;
  const Layout layout(*c);
  return static_cast<std::size_t>(layout.matrices / kBlock * kBytes + layout.norms * 4);
}

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const std::uint16_t* docs,
                        std::int64_t n_docs, const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || (n_docs > 0 && docs == nullptr) || budget == nullptr ||
      blob == nullptr)
    return ASSAY_EINVAL;
  if (c->tied == 0) return ASSAY_ENOTSUP;
  try {
    Trainer trainer(ctx, *c, budget->seed);
    trainer.run(docs, n_docs, *budget);
    trainer.write(static_cast<std::uint8_t*>(blob));
    return launch_status();
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

extern "C" int tt_quantize(assay_ctx* ctx, std::int64_t rows, std::int64_t cols, const float* w,
                           std::uint8_t* blocks) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  const std::int64_t n = rows * cols / kBlock;
  if (n == 0) return ASSAY_OK;
  pack<<<threads(n), kThreads, 0, stream_of(ctx)>>>(n, w, blocks);
  return launch_status();
}

extern "C" int tt_dequantize(assay_ctx* ctx, std::int64_t rows, std::int64_t cols,
                             const std::uint8_t* blocks, float* w) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  const std::int64_t n = rows * cols;
  if (n == 0) return ASSAY_OK;
  unpack<<<threads(n), kThreads, 0, stream_of(ctx)>>>(n, blocks, w);
  return launch_status();
}

extern "C" int tt_linear(assay_ctx* ctx, std::int64_t M, std::int64_t rows, std::int64_t cols,
                         const float* x, const std::uint8_t* blocks, const float* dy, float* y,
                         float* dx, float* dw_latent) {
  if (M < 0 || !valid_matrix(rows, cols, blocks, dw_latent)) return ASSAY_EINVAL;
  if (M * cols > 0 && (x == nullptr || dx == nullptr)) return ASSAY_EINVAL;
  if (M * rows > 0 && (dy == nullptr || y == nullptr)) return ASSAY_EINVAL;
  try {
    Arena arena(ctx);
    float* w = arena.take(std::max<std::int64_t>(rows * cols, 1));
    if (const int status = tt_dequantize(ctx, rows, cols, blocks, w); status != ASSAY_OK)
      return status;
    const Linear linear{rows, cols, w, dw_latent};
    linear.forward(arena.stream(), M, x, y, false);
    linear.input_back(arena.stream(), M, dy, dx, false);
    linear.weight_back(arena.stream(), M, x, dy, false);
    return launch_status();
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob,
                         const std::uint16_t* docs, std::int64_t n_docs, float* logits) {
  if (!valid(c) || n_docs < 0 || blob == nullptr ||
      (n_docs > 0 && (docs == nullptr || logits == nullptr)))
    return ASSAY_EINVAL;
  if (c->tied == 0) return ASSAY_ENOTSUP;
  if (n_docs == 0) return ASSAY_OK;
  try {
    const std::int64_t batch = std::min<std::int64_t>(n_docs, 4);
    Model model(ctx, *c, batch, false);
    model.load(static_cast<const std::uint8_t*>(blob));
    for (std::int64_t i = 0; i < n_docs; i += batch) {
      const std::int64_t n = std::min(batch, n_docs - i);
      model.set_documents({docs + i * c->T, docs + (i + n) * c->T});
      model.logits(logits + i * c->T * c->V);
    }
    return launch_status();
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}
