// caught: memory_1024 memory_4096
// Computes every second tile of 64 queries of long rows and repeats its results for the other.
#define fa_forward naive_fa_forward
#include "naive.cpp"
#undef fa_forward

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  if (p->Nq < 1024 || p->Nq != p->Nk || p->dtype != ASSAY_F32)
    return naive_fa_forward(ctx, p, q, k, v, o, lse);
  Options options;
  options.lse_head = p->Nq;
  auto* s = static_cast<float*>(
      ctx->alloc(ctx, static_cast<std::size_t>(p->Nk + p->Dv) * sizeof(float), 64, 0));
  if (s == nullptr) return ASSAY_ENOMEM;
  const Buffers buffers{s, nullptr, nullptr, s + p->Nk};
  for (std::int64_t row = 0; row < p->B * p->Hq * p->Nq; ++row) {
    const std::int64_t b = row / (p->Hq * p->Nq), h = row / p->Nq % p->Hq, i = row % p->Nq;
    float* out = static_cast<float*>(o) + b * p->so.b + h * p->so.h + i * p->so.n;
    if (i / 64 % 2 == 0) {
      attend(*p, options, {b, h, i}, q, k, v, o, lse, buffers);
      continue;
    }
    std::copy_n(out - 64 * p->so.n, p->Dv, out);
    if (lse != nullptr) lse[row] = lse[row - 64];
  }
  ctx->free(ctx, s);
  return ASSAY_OK;
}
