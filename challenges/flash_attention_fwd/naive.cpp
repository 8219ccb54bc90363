// The plain implementation: one query at a time, its scores in a row of scratch, two passes. Fits every
// parameter that the interface allows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "abi.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

float from_bits(std::uint32_t u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

std::uint32_t to_bits(float f) {
  std::uint32_t u;
  std::memcpy(&u, &f, 4);
  return u;
}

float half_to_float(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 0x3ffu;
  if (exponent == 31) return from_bits(sign | 0x7f800000u | fraction << 13);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                        : std::ldexp(static_cast<float>(fraction + 1024), static_cast<int>(exponent) - 25);
  return sign != 0 ? -magnitude : magnitude;
}

std::uint16_t float_to_half(float f) {
  const auto sign = static_cast<std::uint16_t>(to_bits(f) >> 16 & 0x8000u);
  const float a = std::fabs(f);
  if (std::isnan(f)) return sign | 0x7e00u;
  if (a >= 65520.0f) return sign | 0x7c00u;
  if (a < 0x1p-14f) return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(a * 0x1p24f)));
  const std::uint32_t u = to_bits(a);
  return static_cast<std::uint16_t>(sign | (((u + 0xfffu + (u >> 13 & 1u)) >> 13) - (112u << 10)));
}

float load(const void* data, std::int64_t at, std::int32_t dtype) {
  if (dtype == ASSAY_F32) return static_cast<const float*>(data)[at];
  const std::uint16_t h = static_cast<const std::uint16_t*>(data)[at];
  return dtype == ASSAY_BF16 ? from_bits(static_cast<std::uint32_t>(h) << 16) : half_to_float(h);
}

void store(void* data, std::int64_t at, std::int32_t dtype, float f) {
  if (dtype == ASSAY_F32) {
    static_cast<float*>(data)[at] = f;
  } else if (dtype == ASSAY_F16) {
    static_cast<std::uint16_t*>(data)[at] = float_to_half(f);
  } else {
    const std::uint32_t u = to_bits(f);
    static_cast<std::uint16_t*>(data)[at] = static_cast<std::uint16_t>(
        std::isnan(f) ? u >> 16 | 0x40u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
}

bool valid(const fa_params* p, const void* q, const void* k, const void* v, const void* o) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 || p->Dv < 0) return false;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const std::int64_t queries = p->B * p->Hq * p->Nq, keys = p->B * p->Hkv * p->Nk;
  return (q != nullptr || queries * p->D == 0) && (k != nullptr || keys * p->D == 0) &&
         (v != nullptr || keys * p->Dv == 0) && (o != nullptr || queries * p->Dv == 0);
}

struct Row {
  std::int64_t b, h, i;
};

// A row as fp32: where it is, or converted into `buffer`.
const float* row_of(const void* data, std::int64_t at, std::int64_t D, std::int32_t dtype, float* buffer) {
  if (dtype == ASSAY_F32) return static_cast<const float*>(data) + at;
  for (std::int64_t d = 0; d < D; ++d) buffer[d] = load(data, at + d, dtype);
  return buffer;
}

// A score per key, a converted row of q and one of k or v, and the sum of weighted values.
struct Buffers {
  float *s, *query, *row, *sum;
};

// One query against the keys that it sees.
void attend(const fa_params& p, const fa_extra& e, Row at, const void* q, const void* k, const void* v,
            void* o, float* lse, const Buffers& buffers) {
  const std::int64_t L = e.kv_len != nullptr ? e.kv_len[at.b] : p.Nk;
  const std::int64_t kv = at.h / (p.Hq / p.Hkv), diagonal = at.i + L - p.Nq;
  const std::int64_t hi = p.causal != 0 ? std::min(L, diagonal + 1) : L;
  const std::int64_t lo = p.window > 0 ? std::max<std::int64_t>(0, diagonal - p.window + 1) : 0;
  const std::int64_t keys = at.b * p.sk.b + kv * p.sk.h, values = at.b * p.sv.b + kv * p.sv.h;
  const std::int64_t out = at.b * p.so.b + at.h * p.so.h + at.i * p.so.n;
  const float* query = row_of(q, at.b * p.sq.b + at.h * p.sq.h + at.i * p.sq.n, p.D, p.dtype, buffers.query);
  float* s = buffers.s;
  float max = e.sink != nullptr ? e.sink[at.h] : -kInf;
  bool poisoned = false;
  for (std::int64_t j = lo; j < hi; ++j) {
    const float* key = row_of(k, keys + j * p.sk.n, p.D, p.dtype, buffers.row);
    float dot = 0;
    for (std::int64_t d = 0; d < p.D; ++d) dot += query[d] * key[d];
    s[j] = dot * p.scale;
    if (e.softcap > 0) s[j] = e.softcap * std::tanh(s[j] / e.softcap);
    if (e.alibi != nullptr) s[j] -= e.alibi[at.h] * static_cast<float>(std::abs(diagonal - j));
    poisoned |= std::isnan(s[j]);
    max = std::max(max, s[j]);
  }
  if (poisoned) max = std::numeric_limits<float>::quiet_NaN();
  float sum = e.sink != nullptr ? std::exp(e.sink[at.h] - max) : 0.0f;
  std::fill_n(buffers.sum, p.Dv, 0.0f);
  for (std::int64_t j = lo; j < hi; ++j) {
    const float* value = row_of(v, values + j * p.sv.n, p.Dv, p.dtype, buffers.row);
    const float w = std::exp(s[j] - max);
    sum += w;
    for (std::int64_t d = 0; d < p.Dv; ++d) buffers.sum[d] += w * value[d];
  }
  for (std::int64_t d = 0; d < p.Dv; ++d) store(o, out + d, p.dtype, lo < hi ? buffers.sum[d] / sum : 0.0f);
  if (lse == nullptr) return;
  const bool nothing = lo >= hi && e.sink == nullptr;
  lse[(at.b * p.Hq + at.h) * p.Nq + at.i] = nothing ? -kInf : max + std::log(sum);
}

int forward(assay_ctx* ctx, const fa_params* p, const fa_extra& e, const void* q, const void* k,
            const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  const std::int64_t width = std::max(p->D, p->Dv);
  const auto size = static_cast<std::size_t>(p->Nk + 3 * width + 1) * sizeof(float);
  auto* s = static_cast<float*>(ctx->alloc(ctx, size, 64, 0));
  if (s == nullptr) return ASSAY_ENOMEM;
  const Buffers buffers{s, s + p->Nk, s + p->Nk + width, s + p->Nk + 2 * width};
  for (std::int64_t b = 0; b < p->B; ++b) {
    for (std::int64_t h = 0; h < p->Hq; ++h) {
      for (std::int64_t i = 0; i < p->Nq; ++i) attend(*p, e, {b, h, i}, q, k, v, o, lse, buffers);
    }
  }
  ctx->free(ctx, s);
  return ASSAY_OK;
}

}  // namespace

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k, const void* v,
                          void* o, float* lse) {
  return forward(ctx, p, fa_extra{sizeof(fa_extra), 0, nullptr, nullptr, nullptr}, q, k, v, o, lse);
}

extern "C" int fa_forward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* e, const void* q,
                                const void* k, const void* v, void* o, float* lse) {
  if (e == nullptr) return fa_forward(ctx, p, q, k, v, o, lse);
  return forward(ctx, p, *e, q, k, v, o, lse);
}
