// What the host makes of a call of attention, forward or backward. `Call` is what the kernels of
// either are given: its fields have the names of fa_params.
#pragma once

#include <algorithm>
#include <cstdint>

#include "abi.h"

namespace {

// `queries`, `keys`: rows of all items.
bool valid_sizes(const fa_params* p, std::int64_t queries, std::int64_t keys) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0 || queries < 0 || keys < 0)
    return false;
  return p->Hkv == 0 ? p->Hq == 0 : p->Hq % p->Hkv == 0;
}

// A size of a bias is that of the scores, or 1 where one value serves all.
bool valid_bias(const fa_params& p, const fa_bias* shape, const float* bias) {
  if (shape == nullptr) return false;
  const auto fits = [](std::int64_t size, std::int64_t full) { return size == full || size == 1; };
  if (!fits(shape->B, p.B) || !fits(shape->Hq, p.Hq) || !fits(shape->Nq, p.Nq) ||
      !fits(shape->Nk, p.Nk))
    return false;
  return bias != nullptr || shape->B == 0 || shape->Hq == 0 || shape->Nq == 0 || shape->Nk == 0;
}

template <class Call>
void set_bias(Call& a, const fa_bias& shape, const float* bias) {
  a.bias = bias;
  a.bias_j = shape.Nk == 1 ? 0 : 1;
  a.bias_i = shape.Nq == 1 ? 0 : shape.Nk;
  a.bias_h = shape.Hq == 1 ? 0 : shape.Nq * shape.Nk;
  a.bias_b = shape.B == 1 ? 0 : shape.Hq * shape.Nq * shape.Nk;
}

// Sizes fit 32 bits; `group`: query heads a key head.
template <class Call>
void set_shape(Call& a, const fa_params& p, std::int64_t group) {
  a.sq = p.sq;
  a.sk = p.sk;
  a.sv = p.sv;
  a.so = p.so;
  a.window = p.window > 0 ? static_cast<std::int32_t>(std::min(p.window, p.Nq + p.Nk + 1)) : 0;
  a.items = static_cast<std::int32_t>(p.B);
  a.Hq = static_cast<std::int32_t>(p.Hq);
  a.Hkv = static_cast<std::int32_t>(p.Hkv);
  a.group = static_cast<std::int32_t>(group);
  a.Nq = static_cast<std::int32_t>(p.Nq);
  a.Nk = static_cast<std::int32_t>(p.Nk);
  a.D = static_cast<std::int32_t>(p.D);
  a.Dv = static_cast<std::int32_t>(p.Dv);
  a.scale = p.scale;
  a.causal = p.causal != 0;
}

}  // namespace
