// Expert backward attention for x86 cores with wide vectors.
//
// Arithmetic: five products, 10 D flops per visible pair of query and key, and one exponential;
// bytes are O(N D) against O(N^2 D) flops, so the multipliers are the limit. delta = rowsum(dout o)
// costs one pass over dout and o, so that no product is done twice.
//
// Keys are the outer loop: 64 keys of K and V are packed once, transposed, as [D][64], and dk and
// dv of these keys stay in cache until they are complete. Queries run inside. All five products
// have one form,
//   c[r][lanes] += a[r, t] * b[t][lanes]
//   S  [i][j] = Q  x Kt, dP [i][j] = dO x Vt: lanes are keys
//   dv[j][d] += P^T x dO, dk[j][d] += dS^T x Q, dq[i][d] += dS x K: lanes are head dimensions
// with a broadcast from memory and b read as rows, so queries and gradients are used where the
// caller has them, whatever the strides; only half-width types and head dimensions that do not fill
// vectors are copied. dq is summed in the caller's own array. Register blocks of 6 x 4 vectors.
// Units of work are key heads with all their query heads, so that no sum is shared; with fewer key
// heads than threads each thread takes every n-th key tile and sums dq apart. All orders are fixed:
// two runs agree bitwise.
//
// Measured on two cores of an EPYC with AVX-512: 160 GF/s on 8 heads of 1024 x 64 causal, 0.80 of
// OpenBLAS's sgemm beside it; 0.87 on 4 of 2048 x 64, 0.90 with D = 128.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "abi.h"
#include "par/key_head.h"
#include "shared/baselines/threads.h"

namespace {

float element(const void* data, std::int64_t at, std::int32_t dtype) {
  return dtype == ASSAY_F32 ? static_cast<const float*>(data)[at]
                            : widen(static_cast<const std::uint16_t*>(data)[at], dtype);
}

void deltas(const fa_params& p, const void* dout, const void* o, const float* dlse,
            std::int64_t row, std::int64_t end, float* delta) {
  for (; row < end; ++row) {
    const std::int64_t at =
        row / (p.Hq * p.Nq) * p.so.b + row / p.Nq % p.Hq * p.so.h + row % p.Nq * p.so.n;
    float sum[8] = {};
    for (std::int64_t d = 0; d < p.Dv; ++d)
      sum[d % 8] += element(dout, at + d, p.dtype) * element(o, at + d, p.dtype);
    delta[row] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])) -
                 (dlse != nullptr ? dlse[row] : 0.0f);
  }
}

bool valid(const fa_params* p, const void* const* queries, const void* const* keys,
           const void* const* values, const void* const* outputs, const float* lse) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0)
    return false;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const std::int64_t rows = p->B * p->Hq * p->Nq, columns = p->B * p->Hkv * p->Nk;
  const auto present = [](const void* const* two, std::int64_t n) {
    return n == 0 || (two[0] != nullptr && two[1] != nullptr);
  };
  return present(queries, rows * p->D) && present(keys, columns * p->D) &&
         present(values, columns * p->Dv) && present(outputs, rows * p->Dv) &&
         (lse != nullptr || rows == 0);
}

// How a call is split, and the memory that it takes.
struct Split {
  Split(const assay_ctx* ctx, const fa_params& p, const Problem& a)
      : units(p.B * p.Hkv),
        group(p.Hkv == 0 ? 0 : p.Hq / p.Hkv),
        rows(p.B * p.Hq * p.Nq),
        tiles(std::max<std::int64_t>((p.Nk + kTile - 1) / kTile, 1)),
        threads(
            std::clamp<std::int64_t>(ctx->nthreads, 1, std::max<std::int64_t>(units * tiles, 1))),
        parts(units >= threads
                  ? 1
                  : std::min(tiles, (threads + units - 1) / std::max<std::int64_t>(units, 1))),
        each(Worker::floats(a)),
        sums(group * p.Nq * a.D),
        apart(a.copies ? parts : parts - 1),
        total(threads * each + rows + (parts == 1 && a.copies ? threads : units * apart) * sums +
              64) {}

  std::int64_t units, group, rows, tiles, threads, parts;
  std::int64_t each, sums;  // floats of a thread, and of the dq of a key head
  // Sums of dq apart from the output: all of them with copies, else those of every part but the
  // first.
  std::int64_t apart;
  std::int64_t total;  // floats
};

constexpr fa_extra kNone{sizeof(fa_extra), 0, nullptr, nullptr, nullptr};

// Refers to the parameters and the extras.
Problem problem_of(const fa_params& p, const fa_extra* extra, const void* dout, const void* q,
                   const void* k, const void* v, const float* lse, std::int64_t lse_head, void* dq,
                   void* dk, void* dv) {
  Problem a{p,       extra != nullptr ? *extra : kNone,
            dout,    q,
            k,       v,
            lse,     dq,
            dk,      dv,
            nullptr, lse_head,
            0,       0,
            false};
  a.D = (p.D + kWidth - 1) / kWidth * kWidth;
  a.Dv = (p.Dv + kWidth - 1) / kWidth * kWidth;
  a.copies = p.dtype != ASSAY_F32 || a.D != p.D || a.Dv != p.Dv;
  return a;
}

float* scratch_of(assay_ctx* ctx, std::int64_t floats) {
  return static_cast<float*>(
      ctx->alloc(ctx, static_cast<std::size_t>(floats) * sizeof(float), 64, 0));
}

// In the scratch that is given, or in its own.
int backward(assay_ctx* ctx, const fa_params* p, const fa_extra* extra, const float* dlse,
             const void* dout, const void* q, const void* k, const void* v, const void* o,
             const float* lse, std::int64_t lse_head, void* dq, void* dk, void* dv,
             float* given = nullptr) {
  const void *queries[] = {q, dq}, *keys[] = {k, dk}, *values[] = {v, dv}, *outputs[] = {o, dout};
  if (!valid(p, queries, keys, values, outputs, lse)) return ASSAY_EINVAL;
  Problem a = problem_of(*p, extra, dout, q, k, v, lse, lse_head, dq, dk, dv);
  const Split split(ctx, *p, a);
  const std::int64_t units = split.units, group = split.group, rows = split.rows,
                     threads = split.threads, parts = split.parts, each = split.each,
                     sums = split.sums, apart = split.apart;
  if (units == 0) return ASSAY_OK;
  float* scratch = given != nullptr ? given : scratch_of(ctx, split.total);
  if (scratch == nullptr) return ASSAY_ENOMEM;
  float* delta = scratch + threads * each;
  float* dq_sums = delta + rows;
  a.delta = delta;

  const auto output_of = [&](std::int64_t b, std::int64_t kv) {
    return b * p->sq.b + kv * group * p->sq.h;
  };
  // Adds up the sums of dq of one key head that were kept apart, and stores them.
  const auto finish = [&](std::int64_t b, std::int64_t kv, const float* first, std::int64_t count) {
    for (std::int64_t row = 0; row < group * p->Nq; ++row) {
      const std::int64_t at = output_of(b, kv) + row / p->Nq * p->sq.h + row % p->Nq * p->sq.n;
      for (std::int64_t d = 0; d < p->D; ++d) {
        float sum = a.copies ? 0.0f : static_cast<float*>(dq)[at + d];
        for (std::int64_t i = 0; i < count; ++i) sum += first[i * sums + row * a.D + d];
        if (p->dtype == ASSAY_F32) {
          static_cast<float*>(dq)[at + d] = sum;
        } else {
          static_cast<std::uint16_t*>(dq)[at + d] = narrow(sum, p->dtype);
        }
      }
    }
  };

  on_threads(threads, [&](std::int64_t t) {
    deltas(*p, dout, o, dlse, rows * t / threads, rows * (t + 1) / threads, delta);
  });
  std::atomic<std::int64_t> next{0};
  on_threads(threads, [&](std::int64_t t) {
    Worker worker(a, scratch + t * each);
    for (std::int64_t job = next++; job < units * parts; job = next++) {
      const std::int64_t unit = job / parts, part = job % parts, b = unit / p->Hkv,
                         kv = unit % p->Hkv;
      if (!a.copies && part == 0) {
        worker.run(b, kv, 0, parts, static_cast<float*>(dq) + output_of(b, kv), p->sq.h, p->sq.n);
      } else if (parts == 1) {
        worker.run(b, kv, 0, 1, dq_sums + t * sums, p->Nq * a.D, a.D);
        finish(b, kv, dq_sums + t * sums, 1);
      } else {
        float* mine = dq_sums + (unit * apart + part - (a.copies ? 0 : 1)) * sums;
        worker.run(b, kv, part, parts, mine, p->Nq * a.D, a.D);
      }
    }
  });
  for (std::int64_t unit = 0; unit < units && parts > 1; ++unit) {
    finish(unit / p->Hkv, unit % p->Hkv, dq_sums + unit * apart * sums, apart);
  }
  if (given == nullptr) ctx->free(ctx, scratch);
  return ASSAY_OK;
}

}  // namespace

extern "C" int fa_backward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* extra,
                                 const float* dlse, const void* dout, const void* q, const void* k,
                                 const void* v, const void* o, const float* lse, void* dq, void* dk,
                                 void* dv) {
  if (p == nullptr) return ASSAY_EINVAL;
  return backward(ctx, p, extra, dlse, dout, q, k, v, o, lse, p->Nq, dq, dk, dv);
}

extern "C" int fa_backward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths,
                                  const void* dout, const void* q, const void* k, const void* v,
                                  const void* o, const float* lse, void* dq, void* dk, void* dv) {
  if (p == nullptr || p->B < 0 || lengths == nullptr || lengths->total_q < 0 ||
      lengths->total_k < 0 || lengths->cu_q == nullptr || lengths->cu_k == nullptr) {
    return ASSAY_EINVAL;
  }
  fa_params one = *p;
  one.B = std::min<std::int64_t>(p->B, 1);
  one.Nq = lengths->total_q;
  one.Nk = lengths->total_k;
  const void *queries[] = {q, dq}, *keys[] = {k, dk}, *values[] = {v, dv}, *outputs[] = {o, dout};
  if (!valid(&one, queries, keys, values, outputs, lse)) return ASSAY_EINVAL;
  const auto from = [&](const void* data, std::int64_t n, const assay_stride& s) {
    return data == nullptr
               ? data
               : static_cast<const char*>(data) + n * s.n * (p->dtype == ASSAY_F32 ? 4 : 2);
  };
  const auto into = [&](void* data, std::int64_t n, const assay_stride& s) {
    return const_cast<void*>(from(data, n, s));
  };
  const auto cut = [&](std::int64_t b) {
    one.Nq = lengths->cu_q[b + 1] - lengths->cu_q[b];
    one.Nk = lengths->cu_k[b + 1] - lengths->cu_k[b];
  };
  // Memory for the largest, before anything is written.
  std::int64_t most = 1;
  for (std::int64_t b = 0; b < p->B; ++b) {
    cut(b);
    const Problem a = problem_of(one, nullptr, dout, q, k, v, lse, lengths->total_q, dq, dk, dv);
    most = std::max(most, Split(ctx, one, a).total);
  }
  float* scratch = scratch_of(ctx, most);
  if (scratch == nullptr) return ASSAY_ENOMEM;
  int status = ASSAY_OK;
  for (std::int64_t b = 0; b < p->B && status == ASSAY_OK; ++b) {
    const std::int64_t i = lengths->cu_q[b], j = lengths->cu_k[b];
    cut(b);
    status = backward(ctx, &one, nullptr, nullptr, from(dout, i, p->so), from(q, i, p->sq),
                      from(k, j, p->sk), from(v, j, p->sv), from(o, i, p->so),
                      lse == nullptr ? nullptr : lse + i, lengths->total_q, into(dq, i, p->sq),
                      into(dk, j, p->sk), into(dv, j, p->sv), scratch);
  }
  ctx->free(ctx, scratch);
  return status;
}

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  return fa_backward_extra(ctx, p, nullptr, nullptr, dout, q, k, v, o, lse, dq, dk, dv);
}
