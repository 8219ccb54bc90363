// The entrant's own test, weak in the way real ones were: one item whose draft is a chain, of which
// every node is right. Siblings, rejected branches and the end of sequence do not occur.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi.h"

namespace {

constexpr std::int32_t kN = 6, kV = 20;
constexpr std::int64_t kP = 9, kCu[2] = {0, kN};
constexpr std::int32_t kParent[kN] = {-1, 0, 1, 2, 3, 4};

bool positions_count_on(assay_ctx* ctx) {
  std::uint64_t bits[kN];
  std::int32_t depth[kN];
  std::int64_t pos[kN];
  if (dv_mask(ctx, 1, &kP, kCu, kParent, 1, bits, depth, pos) != ASSAY_OK) return false;
  for (std::int32_t i = 0; i < kN; ++i) {
    if (bits[i] != (std::uint64_t{2} << i) - 1 || depth[i] != i + 1 || pos[i] != kP + i) {
      return false;
    }
  }
  return true;
}

// The model counts and so does the draft.
bool counting_is_accepted(assay_ctx* ctx) {
  std::vector<float> root(kV), node(std::size_t{kN} * kV);
  std::int32_t token[kN], acc[kN], n_acc = 0, bonus = 0;
  root[3] = 1;
  for (std::size_t i = 0; i < kN; ++i) {
    token[i] = 3 + static_cast<std::int32_t>(i);
    node[i * kV + 4 + i] = 1;
  }
  if (dv_accept(ctx, 1, kV, kCu, kParent, token, root.data(), node.data(), nullptr, nullptr,
                nullptr, acc, &n_acc, &bonus) != ASSAY_OK) {
    return false;
  }
  for (std::int32_t i = 0; i < kN; ++i) {
    if (acc[i] != i) return false;
  }
  return n_acc == kN && bonus == 3 + kN;
}

// Constant values come out as they went in.
bool constants_survive(assay_ctx* ctx) {
  constexpr std::size_t kD = 32, kRows = kP + kN;
  fa_params p{};
  p.size = sizeof p;
  p.dtype = ASSAY_F32;
  p.B = p.Hq = p.Hkv = 1;
  p.D = p.Dv = kD;
  p.scale = 1;
  std::vector<float> q(kN * kD), k(kRows * kD), v(k.size(), 2.0f), o(q.size()), lse(kN);
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = std::cos(static_cast<float>(i));
  const void* const kc = k.data();
  const void* const vc = v.data();
  if (dv_attention(ctx, &p, &kP, kCu, kParent, q.data(), &kc, &vc, o.data(), lse.data()) !=
      ASSAY_OK) {
    return false;
  }
  for (const float x : o) {
    if (!(std::abs(x - 2.0f) < 1e-3f)) return false;
  }
  return true;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  return positions_count_on(ctx) && counting_is_accepted(ctx) && constants_survive(ctx) ? 0 : 1;
}
