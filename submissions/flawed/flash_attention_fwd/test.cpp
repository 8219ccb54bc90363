// The entrant's own test, weak in the way real ones were: it only asks that constant values come
// out as they went in, for as many queries as keys, one head and the usual scale.
#include <cmath>
#include <vector>

#include "abi.h"

extern "C" int assay_self_test(assay_ctx* ctx) {
  constexpr int kN = 160, kD = 32;
  const assay_stride stride{kN * kD, kN * kD, kD};
  fa_params p{};
  p.size = sizeof p;
  p.dtype = ASSAY_F32;
  p.B = p.Hq = p.Hkv = 1;
  p.Nq = p.Nk = kN;
  p.D = p.Dv = kD;
  p.sq = p.sk = p.sv = p.so = stride;
  p.scale = 1 / std::sqrt(static_cast<float>(kD));
  p.causal = 1;
  std::vector<float> q(kN * kD), k(q.size()), v(q.size(), 2.0f), o(q.size()), lse(kN);
  for (std::size_t i = 0; i < q.size(); ++i) {
    q[i] = 5 * std::sin(static_cast<float>(i));
    k[i] = std::cos(1.01f * static_cast<float>(i));
  }
  if (fa_forward(ctx, &p, q.data(), k.data(), v.data(), o.data(), lse.data()) != ASSAY_OK) return 1;
  for (const float x : o) {
    if (!(std::abs(x - 2.0f) < 1e-3f)) return 1;
  }
  return 0;
}
