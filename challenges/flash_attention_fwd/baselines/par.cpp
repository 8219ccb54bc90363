// Expert forward attention for x86 cores with wide vectors.
//
// Arithmetic: 4 D flops per visible pair of query and key (two products) and one exponential; bytes
// are O(N D) against O(N^2 D) flops, so the multipliers are the limit from N of a few hundred on.
// At D = 64 an exponential of 12 instructions a vector stands beside 128 multiply-adds: 10 % on top
// at best.
//
// Lanes are queries. 64 query rows are packed once, transposed, as [D][64]; then both products have
// one form: c[r][64 lanes] += a[r, t] * b[t][64 lanes], with a scalar of K or V broadcast straight
// from the caller's memory. Nothing of K or V is packed or transposed, whatever the strides; the
// maximum and the sum over keys are vertical, one per lane; scores and outputs of a tile stay in L1
// and L2. Register blocks of 6 x 4 vectors (6 x 2 without AVX-512) keep the multipliers busy. Query
// heads that share a key head are rows of the same tile when there are few queries. A tile that
// lies fully inside the visible range skips all masking; keys that nobody in a tile sees are never
// touched.
//
// Measured on two cores of an EPYC with AVX-512: 146 GF/s on 8 heads of 1024 x 64 causal, 171 on 4
// of 4096 x 64, 0.72 and 0.84 of OpenBLAS's sgemm beside it; 0.87 with D = 128.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "abi.h"
#include "par/tile.h"
#include "shared/baselines/threads.h"

namespace {

bool valid(const fa_params* p, const void* q, const void* k, const void* v, const void* o) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0)
    return false;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const std::int64_t queries = p->B * p->Hq * p->Nq, keys = p->B * p->Hkv * p->Nk;
  return (q != nullptr || queries * p->D == 0) && (k != nullptr || keys * p->D == 0) &&
         (v != nullptr || keys * p->Dv == 0) && (o != nullptr || queries * p->Dv == 0);
}

constexpr fa_extra kNone{sizeof(fa_extra), 0, nullptr, nullptr, nullptr};

std::size_t floats_of_a_thread(const fa_params& p) { return (Tile::floats(p) + 15) / 16 * 16; }

// Room for so many threads; NULL where there is no memory.
float* scratch_for(assay_ctx* ctx, const fa_params& p, std::int64_t threads) {
  return static_cast<float*>(ctx->alloc(
      ctx, static_cast<std::size_t>(threads) * floats_of_a_thread(p) * sizeof(float), 64, 0));
}

// In the scratch that is given, with room for ctx->nthreads, or in its own.
int forward(assay_ctx* ctx, Problem problem, float* given = nullptr) {
  const fa_params* p = &problem.p;
  if (!valid(p, problem.q, problem.k, problem.v, problem.o)) return ASSAY_EINVAL;
  if (p->B * p->Hq * p->Nq == 0) return ASSAY_OK;
  problem.group = p->Hq / p->Hkv;
  problem.tiles = (problem.group * p->Nq + kRows - 1) / kRows;
  const std::int64_t jobs = p->B * p->Hkv * problem.tiles;
  const auto threads = std::clamp<std::int64_t>(ctx->nthreads, 1, jobs);
  const std::size_t each = floats_of_a_thread(*p);
  float* scratch = given != nullptr ? given : scratch_for(ctx, *p, threads);
  if (scratch == nullptr) return ASSAY_ENOMEM;
  std::atomic<std::int64_t> next{0};
  on_threads(threads, [&](std::int64_t thread) {
    Tile tile(problem, scratch + static_cast<std::size_t>(thread) * each);
    for (std::int64_t job = next++; job < jobs; job = next++) {
      // The last tile of a causal head is the longest: first come, first served from the end.
      const std::int64_t heads = p->B * p->Hkv, at = problem.tiles - 1 - job / heads,
                         bh = job % heads;
      tile.run(bh / p->Hkv, bh % p->Hkv, at * kRows);
    }
  });
  if (given == nullptr) ctx->free(ctx, scratch);
  return ASSAY_OK;
}

}  // namespace

extern "C" int fa_forward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* extra,
                                const void* q, const void* k, const void* v, void* o, float* lse) {
  if (p == nullptr) return ASSAY_EINVAL;
  return forward(ctx,
                 {*p, extra != nullptr ? *extra : kNone, q, k, v, o, lse, p->Nq, nullptr, nullptr});
}

extern "C" int fa_forward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths,
                                 const void* q, const void* k, const void* v, void* o, float* lse) {
  if (p == nullptr || p->B < 0 || lengths == nullptr || lengths->total_q < 0 ||
      lengths->total_k < 0 || lengths->cu_q == nullptr || lengths->cu_k == nullptr) {
    return ASSAY_EINVAL;
  }
  fa_params one = *p;
  one.B = std::min<std::int64_t>(p->B, 1);
  one.Nq = lengths->total_q;
  one.Nk = lengths->total_k;
  if (!valid(&one, q, k, v, o)) return ASSAY_EINVAL;
  const auto from = [&](const void* data, std::int64_t n, const assay_stride& s) {
    return data == nullptr
               ? data
               : static_cast<const char*>(data) + n * s.n * (p->dtype == ASSAY_F32 ? 4 : 2);
  };
  float* scratch = scratch_for(ctx, *p, std::max(ctx->nthreads, 1));
  if (scratch == nullptr) return ASSAY_ENOMEM;
  int status = ASSAY_OK;
  for (std::int64_t b = 0; b < p->B && status == ASSAY_OK; ++b) {
    const std::int64_t i = lengths->cu_q[b], j = lengths->cu_k[b];
    one.Nq = lengths->cu_q[b + 1] - i;
    one.Nk = lengths->cu_k[b + 1] - j;
    status = forward(ctx,
                     {one, kNone, from(q, i, p->sq), from(k, j, p->sk), from(v, j, p->sv),
                      const_cast<void*>(from(o, i, p->so)), lse == nullptr ? nullptr : lse + i,
                      lengths->total_q, nullptr, nullptr},
                     scratch);
  }
  ctx->free(ctx, scratch);
  return status;
}

extern "C" int fa_forward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* shape,
                               const float* bias, const void* q, const void* k, const void* v,
                               void* o, float* lse) {
  if (!valid(p, q, k, v, o) || shape == nullptr) return ASSAY_EINVAL;
  const auto fits = [](std::int64_t size, std::int64_t full) { return size == full || size == 1; };
  if (!fits(shape->B, p->B) || !fits(shape->Hq, p->Hq) || !fits(shape->Nq, p->Nq) ||
      !fits(shape->Nk, p->Nk))
    return ASSAY_EINVAL;
  if (bias == nullptr && shape->B * shape->Hq * shape->Nq * shape->Nk != 0) return ASSAY_EINVAL;
  return forward(ctx, {*p, kNone, q, k, v, o, lse, p->Nq, shape, bias});
}

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  return fa_forward_extra(ctx, p, nullptr, q, k, v, o, lse);
}
