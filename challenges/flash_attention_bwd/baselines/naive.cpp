// The plain implementation: one pair of query and key at a time, gradients summed in fp32. Fits
// every parameter that the interface allows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "abi.h"
#include "shared/baselines/plain_elements.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

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

struct Arrays {
  const void *dout, *q, *k, *v, *o;
  const float *lse, *dlse;
  void *dq, *dk, *dv;
  std::int64_t lse_head = 0;  // elements of lse and dlse from head to head
  fa_bias shape{};            // of bias and dbias
  const float* bias = nullptr;
  float* dbias = nullptr;
};

// A row as fp32: where it is, or converted into `buffer`.
const float* row_of(const void* data, std::int64_t at, std::int64_t D, std::int32_t dtype,
                    float* buffer) {
  if (dtype == ASSAY_F32) return static_cast<const float*>(data) + at;
  for (std::int64_t d = 0; d < D; ++d) buffer[d] = load(data, at + d, dtype);
  return buffer;
}

// Sums for one key head, [Nk, D] and [Nk, Dv], and of dq; converted rows.
struct Sums {
  float *dk, *dv, *dq, *q, *dout, *row;
};

// One query: its row of dq, and its part of the sums.
void add_query(const fa_params& p, const fa_extra& e, const Arrays& a, std::int64_t b,
               std::int64_t h, std::int64_t i, const Sums& sums) {
  const std::int64_t L = e.kv_len != nullptr ? e.kv_len[b] : p.Nk;
  const std::int64_t kv = h / (p.Hq / p.Hkv), diagonal = i + L - p.Nq;
  const std::int64_t hi = p.causal != 0 ? std::min(L, diagonal + 1) : L;
  const std::int64_t window = std::min(p.window, p.Nq + L);  // may be any number
  const std::int64_t lo = window > 0 ? std::max<std::int64_t>(0, diagonal - window + 1) : 0;
  const std::int64_t query = b * p.sq.b + h * p.sq.h + i * p.sq.n,
                     out = b * p.so.b + h * p.so.h + i * p.so.n;
  const std::int64_t keys = b * p.sk.b + kv * p.sk.h, values = b * p.sv.b + kv * p.sv.h;
  const std::int64_t row = (b * p.Hq + h) * a.lse_head + i;
  const fa_bias& shape = a.shape;
  const float* q = row_of(a.q, query, p.D, p.dtype, sums.q);
  const float* dout = row_of(a.dout, out, p.Dv, p.dtype, sums.dout);
  const float* o = row_of(a.o, out, p.Dv, p.dtype, sums.row);
  float delta = a.dlse != nullptr ? -a.dlse[row] : 0.0f;
  for (std::int64_t d = 0; d < p.Dv; ++d) delta += dout[d] * o[d];
  std::fill_n(sums.dq, p.D, 0.0f);
  for (std::int64_t j = lo; j < hi; ++j) {
    const float* v = row_of(a.v, values + j * p.sv.n, p.Dv, p.dtype, sums.row);
    float s = 0, dp = 0, slope = 1;
    for (std::int64_t d = 0; d < p.Dv; ++d) dp += dout[d] * v[d];
    const float* k = row_of(a.k, keys + j * p.sk.n, p.D, p.dtype, sums.row);
    for (std::int64_t d = 0; d < p.D; ++d) s += q[d] * k[d];
    s *= p.scale;
    if (e.softcap > 0) {
      // 1 - tanh^2, without the cancellation that is left of it where tanh is near 1.
      const float decay = std::exp(-2 * std::abs(s / e.softcap));
      slope = 4 * decay / ((1 + decay) * (1 + decay));
      s = e.softcap * std::tanh(s / e.softcap);
    }
    if (e.alibi != nullptr) s -= e.alibi[h] * static_cast<float>(std::abs(diagonal - j));
    std::int64_t of_bias = 0;
    if (a.bias != nullptr) {
      of_bias = ((b % shape.B * shape.Hq + h % shape.Hq) * shape.Nq + i % shape.Nq) * shape.Nk +
                j % shape.Nk;
      s += a.bias[of_bias];
    }
    const float w = std::exp(s - a.lse[row]), ds = w * (dp - delta) * slope * p.scale;
    if (a.dbias != nullptr) a.dbias[of_bias] += w * (dp - delta);
    for (std::int64_t d = 0; d < p.Dv; ++d) sums.dv[j * p.Dv + d] += w * dout[d];
    for (std::int64_t d = 0; d < p.D; ++d) {
      sums.dk[j * p.D + d] += ds * q[d];
      sums.dq[d] += ds * k[d];
    }
  }
  for (std::int64_t d = 0; d < p.D; ++d) store(a.dq, query + d, p.dtype, sums.dq[d]);
}

void key_head(const fa_params& p, const fa_extra& e, const Arrays& a, std::int64_t b,
              std::int64_t kv, const Sums& sums) {
  std::fill_n(sums.dk, p.Nk * p.D, 0.0f);
  std::fill_n(sums.dv, p.Nk * p.Dv, 0.0f);
  const std::int64_t group = p.Hq / p.Hkv;
  for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
    for (std::int64_t i = 0; i < p.Nq; ++i) add_query(p, e, a, b, h, i, sums);
  }
  for (std::int64_t j = 0; j < p.Nk; ++j) {
    for (std::int64_t d = 0; d < p.D; ++d)
      store(a.dk, b * p.sk.b + kv * p.sk.h + j * p.sk.n + d, p.dtype, sums.dk[j * p.D + d]);
    for (std::int64_t d = 0; d < p.Dv; ++d)
      store(a.dv, b * p.sv.b + kv * p.sv.h + j * p.sv.n + d, p.dtype, sums.dv[j * p.Dv + d]);
  }
}

bool valid(const fa_params* p, const Arrays& a) {
  const void *queries[] = {a.q, a.dq}, *keys[] = {a.k, a.dk}, *values[] = {a.v, a.dv},
             *outputs[] = {a.o, a.dout};
  return valid(p, queries, keys, values, outputs, a.lse);
}

// What backward() needs for so many keys; NULL where there is no memory.
float* scratch_for(assay_ctx* ctx, const fa_params& p, std::int64_t keys) {
  const std::int64_t floats = keys * (p.D + p.Dv) + 4 * std::max(p.D, p.Dv) + 1;
  return static_cast<float*>(
      ctx->alloc(ctx, static_cast<std::size_t>(floats) * sizeof(float), 64, 0));
}

void backward(const fa_params* p, const fa_extra* extra, Arrays arrays, float* scratch) {
  const fa_extra none{sizeof(fa_extra), 0, nullptr, nullptr, nullptr};
  if (arrays.lse_head == 0) arrays.lse_head = p->Nq;
  const std::int64_t width = std::max(p->D, p->Dv);
  float* rows = scratch + p->Nk * (p->D + p->Dv);
  const Sums sums{scratch,      scratch + p->Nk * p->D, rows,
                  rows + width, rows + 2 * width,       rows + 3 * width};
  for (std::int64_t b = 0; b < p->B; ++b) {
    for (std::int64_t kv = 0; kv < p->Hkv; ++kv) {
      key_head(*p, extra != nullptr ? *extra : none, arrays, b, kv, sums);
    }
  }
}

int backward(assay_ctx* ctx, const fa_params* p, const fa_extra* extra, const Arrays& arrays) {
  if (!valid(p, arrays)) return ASSAY_EINVAL;
  float* scratch = scratch_for(ctx, *p, p->Nk);
  if (scratch == nullptr) return ASSAY_ENOMEM;
  if (arrays.dbias != nullptr) {
    const fa_bias& s = arrays.shape;
    std::fill_n(arrays.dbias, s.B * s.Hq * s.Nq * s.Nk, 0.0f);
  }
  backward(p, extra, arrays, scratch);
  ctx->free(ctx, scratch);
  return ASSAY_OK;
}

// One row of o and lse: all scores, then the weighted mean of the values. The scratch is [Nk + 2 *
// max(D, Dv)].
void attend(const fa_params& p, std::int64_t b, std::int64_t h, std::int64_t i, const void* q,
            const void* k, const void* v, void* o, float* lse, float* scratch) {
  const std::int64_t kv = h / (p.Hq / p.Hkv), diagonal = i + p.Nk - p.Nq,
                     width = std::max(p.D, p.Dv);
  const std::int64_t hi = p.causal != 0 ? std::min(p.Nk, diagonal + 1) : p.Nk;
  const std::int64_t window = std::min(p.window, p.Nq + p.Nk);  // may be any number
  const std::int64_t lo = window > 0 ? std::max<std::int64_t>(0, diagonal - window + 1) : 0;
  const std::int64_t keys = b * p.sk.b + kv * p.sk.h, values = b * p.sv.b + kv * p.sv.h;
  const std::int64_t out = b * p.so.b + h * p.so.h + i * p.so.n;
  float *s = scratch, *sums = scratch + p.Nk, *row = sums + width;
  float max = -kInf, sum = 0;
  for (std::int64_t j = lo; j < hi; ++j) {
    s[j] = 0;
    for (std::int64_t d = 0; d < p.D; ++d) {
      s[j] += load(q, b * p.sq.b + h * p.sq.h + i * p.sq.n + d, p.dtype) *
              load(k, keys + j * p.sk.n + d, p.dtype);
    }
    s[j] *= p.scale;
    max = std::isnan(s[j]) || s[j] > max ? s[j] : max;
  }
  std::fill_n(sums, p.Dv, 0.0f);
  for (std::int64_t j = lo; j < hi; ++j) {
    const float w = std::exp(s[j] - max);
    const float* value = row_of(v, values + j * p.sv.n, p.Dv, p.dtype, row);
    sum += w;
    for (std::int64_t d = 0; d < p.Dv; ++d) sums[d] += w * value[d];
  }
  for (std::int64_t d = 0; d < p.Dv; ++d)
    store(o, out + d, p.dtype, lo < hi ? sums[d] / sum : 0.0f);
  lse[(b * p.Hq + h) * p.Nq + i] = lo < hi ? max + std::log(sum) : -kInf;
}

}  // namespace

extern "C" int fa_backward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* extra,
                                 const float* dlse, const void* dout, const void* q, const void* k,
                                 const void* v, const void* o, const float* lse, void* dq, void* dk,
                                 void* dv) {
  return backward(ctx, p, extra, {dout, q, k, v, o, lse, dlse, dq, dk, dv});
}

extern "C" int fa_backward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* shape,
                                const float* bias, const void* dout, const void* q, const void* k,
                                const void* v, const void* o, const float* lse, void* dq, void* dk,
                                void* dv, float* dbias) {
  Arrays arrays{dout, q, k, v, o, lse, nullptr, dq, dk, dv};
  if (!valid(p, arrays) || shape == nullptr) return ASSAY_EINVAL;
  const auto fits = [](std::int64_t size, std::int64_t full) { return size == full || size == 1; };
  if (!fits(shape->B, p->B) || !fits(shape->Hq, p->Hq) || !fits(shape->Nq, p->Nq) ||
      !fits(shape->Nk, p->Nk))
    return ASSAY_EINVAL;
  const std::int64_t size = shape->B * shape->Hq * shape->Nq * shape->Nk;
  if (bias == nullptr && size != 0) return ASSAY_EINVAL;
  arrays.shape = *shape;
  arrays.bias = bias;
  arrays.dbias = dbias;
  return backward(ctx, p, nullptr, arrays);
}

// One sequence after the other, in memory for the longest.
extern "C" int fa_backward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths,
                                  const void* dout, const void* q, const void* k, const void* v,
                                  const void* o, const float* lse, void* dq, void* dk, void* dv) {
  if (p == nullptr || p->B < 0 || lengths == nullptr || lengths->total_q < 0 ||
      lengths->total_k < 0 || lengths->cu_q == nullptr || lengths->cu_k == nullptr) {
    return ASSAY_EINVAL;
  }
  fa_params all = *p;
  all.B = std::min<std::int64_t>(p->B, 1);
  all.Nq = lengths->total_q;
  all.Nk = lengths->total_k;
  if (!valid(&all, Arrays{dout, q, k, v, o, lse, nullptr, dq, dk, dv})) return ASSAY_EINVAL;
  const std::int64_t size = p->dtype == ASSAY_F32 ? 4 : 2;
  const auto from = [&](const void* data, std::int64_t n, const assay_stride& s) {
    return data == nullptr ? data : static_cast<const char*>(data) + n * s.n * size;
  };
  const auto into = [&](void* data, std::int64_t n, const assay_stride& s) {
    return const_cast<void*>(from(data, n, s));
  };
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < p->B; ++b)
    longest = std::max(longest, lengths->cu_k[b + 1] - lengths->cu_k[b]);
  float* scratch = scratch_for(ctx, *p, longest);
  if (scratch == nullptr) return ASSAY_ENOMEM;
  for (std::int64_t b = 0; b < p->B; ++b) {
    const std::int64_t i = lengths->cu_q[b], j = lengths->cu_k[b];
    fa_params one = all;
    one.Nq = lengths->cu_q[b + 1] - i;
    one.Nk = lengths->cu_k[b + 1] - j;
    const Arrays arrays{from(dout, i, p->so),
                        from(q, i, p->sq),
                        from(k, j, p->sk),
                        from(v, j, p->sv),
                        from(o, i, p->so),
                        lse == nullptr ? nullptr : lse + i,
                        nullptr,
                        into(dq, i, p->sq),
                        into(dk, j, p->sk),
                        into(dv, j, p->sv),
                        lengths->total_q};
    backward(&one, nullptr, arrays, scratch);
  }
  ctx->free(ctx, scratch);
  return ASSAY_OK;
}

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  const void *queries[] = {q, q}, *keys[] = {k, k}, *values[] = {v, v}, *outputs[] = {o, o};
  if (!valid(p, queries, keys, values, outputs, lse)) return ASSAY_EINVAL;
  const auto size = static_cast<std::size_t>(p->Nk + 2 * std::max(p->D, p->Dv) + 1);
  auto* scratch = static_cast<float*>(ctx->alloc(ctx, size * sizeof(float), 64, 0));
  if (scratch == nullptr) return ASSAY_ENOMEM;
  for (std::int64_t row = 0; row < p->B * p->Hq * p->Nq; ++row) {
    attend(*p, row / (p->Hq * p->Nq), row / p->Nq % p->Hq, row % p->Nq, q, k, v, o, lse, scratch);
  }
  ctx->free(ctx, scratch);
  return ASSAY_OK;
}

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  return fa_backward_extra(ctx, p, nullptr, nullptr, dout, q, k, v, o, lse, dq, dk, dv);
}
