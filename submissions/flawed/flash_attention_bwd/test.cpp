// The entrant's own test, weak in the way real ones were: uniform attention, where dv is the mean
// of dout and, with constant values, dq and dk vanish.
#include <cmath>
#include <vector>

#include "abi.h"

extern "C" int assay_self_test(assay_ctx* ctx) {
  constexpr int kN = 32, kD = 32;
  const assay_stride stride{kN * kD, kN * kD, kD};
  fa_params p{};
  p.size = sizeof p;
  p.dtype = ASSAY_F32;
  p.B = p.Hq = p.Hkv = 1;
  p.Nq = p.Nk = kN;
  p.D = p.Dv = kD;
  p.sq = p.sk = p.sv = p.so = stride;
  p.scale = 1 / std::sqrt(static_cast<float>(kD));
  std::vector<float> q(kN * kD), k(q.size()), v(q.size(), 1.0f), o(q.size(), 1.0f), dout(q.size());
  std::vector<float> lse(kN, std::log(static_cast<float>(kN))), dq(q.size()), dk(q.size()),
      dv(q.size());
  for (std::size_t i = 0; i < q.size(); ++i) {
    k[i] = std::sin(static_cast<float>(i));
    dout[i] = std::cos(2.0f * static_cast<float>(i));
  }
  if (fa_backward(ctx, &p, dout.data(), q.data(), k.data(), v.data(), o.data(), lse.data(),
                  dq.data(), dk.data(), dv.data()) != ASSAY_OK) {
    return 1;
  }
  for (std::size_t i = 0; i < q.size(); ++i) {
    float mean = 0;
    for (std::size_t r = 0; r < kN; ++r) mean += dout[r * kD + i % kD] / kN;
    if (!(std::abs(dv[i] - mean) < 1e-4f && std::abs(dq[i]) < 1e-3f && std::abs(dk[i]) < 1e-3f))
      return 1;
  }
  return 0;
}
