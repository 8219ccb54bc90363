// The plain implementation: one query at a time, its scores in a row of scratch, two passes. Fits
// every parameter that the interface allows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "abi.h"
#include "shared/baselines/plain_elements.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

constexpr std::int32_t kE4m3 = -1;  // of inputs, beside the ASSAY_* types

float e4m3_to_float(std::uint8_t x) {
  const int exponent = x >> 3 & 15, fraction = x & 7;
  if (exponent == 15 && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -9)
                              : std::ldexp(static_cast<float>(fraction + 8), exponent - 10);
  return x >= 0x80 ? -magnitude : magnitude;
}

float load_input(const void* data, std::int64_t at, std::int32_t dtype) {
  if (dtype == kE4m3) return e4m3_to_float(static_cast<const std::uint8_t*>(data)[at]);
  return load(data, at, dtype);
}

bool valid(const fa_params* p, const void* q, const void* k, const void* v, const void* o) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0)
    return false;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const std::int64_t queries = p->B * p->Hq * p->Nq, keys = p->B * p->Hkv * p->Nk;
  return (q != nullptr || queries * p->D == 0) && (k != nullptr || keys * p->D == 0) &&
         (v != nullptr || keys * p->Dv == 0) && (o != nullptr || queries * p->Dv == 0);
}

struct Row {
  std::int64_t b, h, i;
};

// A row as fp32: where it is, or converted into `buffer`.
const float* row_of(const void* data, std::int64_t at, std::int64_t D, std::int32_t dtype,
                    float* buffer) {
  if (dtype == ASSAY_F32) return static_cast<const float*>(data) + at;
  for (std::int64_t d = 0; d < D; ++d) buffer[d] = load_input(data, at + d, dtype);
  return buffer;
}

// What a call has beside its params.
struct Options {
  fa_extra extra{sizeof(fa_extra), 0, nullptr, nullptr, nullptr};
  fa_bias shape{};  // of the bias
  const float* bias = nullptr;
  std::int32_t input = ASSAY_F32;          // type of q, k and v
  float score_scale = 1, value_scale = 1;  // of fp8 inputs
  std::int64_t lse_head = 0;               // elements of lse from head to head
};

// A score per key, a converted row of q and one of k or v, and the sum of weighted values.
struct Buffers {
  float *s, *query, *row, *sum;
};

// One query against the keys that it sees.
void attend(const fa_params& p, const Options& options, Row at, const void* q, const void* k,
            const void* v, void* o, float* lse, const Buffers& buffers) {
  const fa_extra& e = options.extra;
  const fa_bias& shape = options.shape;
  const std::int64_t L = e.kv_len != nullptr ? e.kv_len[at.b] : p.Nk;
  const std::int64_t kv = at.h / (p.Hq / p.Hkv), diagonal = at.i + L - p.Nq;
  const std::int64_t hi = p.causal != 0 ? std::min(L, diagonal + 1) : L;
  const std::int64_t window = std::min(p.window, p.Nq + L);  // may be any number
  const std::int64_t lo = window > 0 ? std::max<std::int64_t>(0, diagonal - window + 1) : 0;
  const std::int64_t keys = at.b * p.sk.b + kv * p.sk.h, values = at.b * p.sv.b + kv * p.sv.h;
  const std::int64_t out = at.b * p.so.b + at.h * p.so.h + at.i * p.so.n;
  const float* query =
      row_of(q, at.b * p.sq.b + at.h * p.sq.h + at.i * p.sq.n, p.D, options.input, buffers.query);
  float* s = buffers.s;
  float max = e.sink != nullptr ? e.sink[at.h] : -kInf;
  bool poisoned = false;
  for (std::int64_t j = lo; j < hi; ++j) {
    const float* key = row_of(k, keys + j * p.sk.n, p.D, options.input, buffers.row);
    float dot = 0;
    for (std::int64_t d = 0; d < p.D; ++d) dot += query[d] * key[d];
    s[j] = dot * (p.scale * options.score_scale);
    if (options.bias != nullptr) {
      const std::int64_t row =
          (at.b % shape.B * shape.Hq + at.h % shape.Hq) * shape.Nq + at.i % shape.Nq;
      s[j] += options.bias[row * shape.Nk + j % shape.Nk];
    }
    if (e.softcap > 0) s[j] = e.softcap * std::tanh(s[j] / e.softcap);
    if (e.alibi != nullptr) s[j] -= e.alibi[at.h] * static_cast<float>(std::abs(diagonal - j));
    poisoned |= std::isnan(s[j]);
    max = std::max(max, s[j]);
  }
  if (poisoned) max = std::numeric_limits<float>::quiet_NaN();
  float sum = e.sink != nullptr ? std::exp(e.sink[at.h] - max) : 0.0f;
  std::fill_n(buffers.sum, p.Dv, 0.0f);
  for (std::int64_t j = lo; j < hi; ++j) {
    const float* value = row_of(v, values + j * p.sv.n, p.Dv, options.input, buffers.row);
    const float w = std::exp(s[j] - max);
    sum += w;
    for (std::int64_t d = 0; d < p.Dv; ++d) buffers.sum[d] += w * value[d];
  }
  for (std::int64_t d = 0; d < p.Dv; ++d)
    store(o, out + d, p.dtype, lo < hi ? buffers.sum[d] / sum * options.value_scale : 0.0f);
  if (lse == nullptr) return;
  const bool nothing = lo >= hi && e.sink == nullptr;
  lse[(at.b * p.Hq + at.h) * options.lse_head + at.i] = nothing ? -kInf : max + std::log(sum);
}

// What attend() needs for so many keys; NULL where there is no memory.
float* scratch_for(assay_ctx* ctx, const fa_params& p, std::int64_t keys) {
  const std::int64_t floats = keys + 3 * std::max(p.D, p.Dv) + 1;
  return static_cast<float*>(
      ctx->alloc(ctx, static_cast<std::size_t>(floats) * sizeof(float), 64, 0));
}

void forward(const fa_params* p, Options options, const void* q, const void* k, const void* v,
             void* o, float* lse, float* s) {
  if (options.input != kE4m3) options.input = p->dtype;
  if (options.lse_head == 0) options.lse_head = p->Nq;
  const std::int64_t width = std::max(p->D, p->Dv);
  const Buffers buffers{s, s + p->Nk, s + p->Nk + width, s + p->Nk + 2 * width};
  for (std::int64_t b = 0; b < p->B; ++b) {
    for (std::int64_t h = 0; h < p->Hq; ++h) {
      for (std::int64_t i = 0; i < p->Nq; ++i)
        attend(*p, options, {b, h, i}, q, k, v, o, lse, buffers);
    }
  }
}

int forward(assay_ctx* ctx, const fa_params* p, const Options& options, const void* q,
            const void* k, const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  float* scratch = scratch_for(ctx, *p, p->Nk);
  if (scratch == nullptr) return ASSAY_ENOMEM;
  forward(p, options, q, k, v, o, lse, scratch);
  ctx->free(ctx, scratch);
  return ASSAY_OK;
}

}  // namespace

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  return forward(ctx, p, {}, q, k, v, o, lse);
}

extern "C" int fa_forward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* e,
                                const void* q, const void* k, const void* v, void* o, float* lse) {
  if (e == nullptr) return fa_forward(ctx, p, q, k, v, o, lse);
  Options options;
  options.extra = *e;
  return forward(ctx, p, options, q, k, v, o, lse);
}

// One sequence after the other, in memory for the longest.
extern "C" int fa_forward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths,
                                 const void* q, const void* k, const void* v, void* o, float* lse) {
  if (p == nullptr || p->B < 0 || lengths == nullptr || lengths->total_q < 0 ||
      lengths->total_k < 0 || lengths->cu_q == nullptr || lengths->cu_k == nullptr) {
    return ASSAY_EINVAL;
  }
  fa_params all = *p;
  all.B = std::min<std::int64_t>(p->B, 1);
  all.Nq = lengths->total_q;
  all.Nk = lengths->total_k;
  if (!valid(&all, q, k, v, o)) return ASSAY_EINVAL;
  const std::int64_t size = p->dtype == ASSAY_F32 ? 4 : 2;
  const auto from = [&](const void* data, std::int64_t n, const assay_stride& s) {
    return data == nullptr ? data : static_cast<const char*>(data) + n * s.n * size;
  };
  Options options;
  options.lse_head = lengths->total_q;
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < p->B; ++b)
    longest = std::max(longest, lengths->cu_k[b + 1] - lengths->cu_k[b]);
  float* scratch = scratch_for(ctx, *p, longest);
  if (scratch == nullptr) return ASSAY_ENOMEM;
  for (std::int64_t b = 0; b < p->B; ++b) {
    const std::int64_t query = lengths->cu_q[b], key = lengths->cu_k[b];
    fa_params one = all;
    one.Nq = lengths->cu_q[b + 1] - query;
    one.Nk = lengths->cu_k[b + 1] - key;
    forward(&one, options, from(q, query, p->sq), from(k, key, p->sk), from(v, key, p->sv),
            const_cast<void*>(from(o, query, p->so)), lse == nullptr ? nullptr : lse + query,
            scratch);
  }
  ctx->free(ctx, scratch);
  return ASSAY_OK;
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
  Options options;
  options.shape = *shape;
  options.bias = bias;
  return forward(ctx, p, options, q, k, v, o, lse);
}

extern "C" int fa_forward_fp8(assay_ctx* ctx, const fa_params* p, const float* scales,
                              const std::uint8_t* q, const std::uint8_t* k, const std::uint8_t* v,
                              void* o, float* lse) {
  if (scales == nullptr) return ASSAY_EINVAL;
  Options options;
  options.input = kE4m3;
  options.score_scale = scales[0] * scales[1];
  options.value_scale = scales[2];
  return forward(ctx, p, options, q, k, v, o, lse);
}
