// The expert implementation for a CPU.
//
// Napkin arithmetic. Attention, P = 8192, N = 60, Hq/Hkv = 16/4, D = 128: 4 Hq D N P = 4.0 GF over
// 34 MB of keys and values, so 120 flops a byte: bound by arithmetic. A 2.6 GHz core with two
// 16-lane FMA units does 166 GF/s, two of them need 12 ms at best; the 7.9 M exponentials at 12
// operations a lane add 1 ms. What matters is that all query rows of a key head (heads times nodes:
// 240) pass over a tile of keys while it is in the L2 cache, and that the inner loops are nothing
// but FMAs.
//   Lanes are query rows: scores, weights and outputs are stored transposed, so a key or value
//   element is one broadcast, the softmax needs no horizontal step, and neither keys nor values are
//   packed. The prefix is visible to every row and needs no mask at all. The few ancestors of a row
//   are visited one by one before, and nothing that is masked is ever read.
// Acceptance, B = 64, N = 64, V = 32000: 524 MB of logits, of which the walk needs only n_acc + 1
// rows an item, about 60 MB: 3 to 6 ms at 10 to 20 GB/s. Rows are read when the walk reaches them.
// Measured on two cores of an EPYC: attention 24.6 ms, 163 GF/s; acceptance 2.3 ms.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "abi.h"
#include "common/generate.h"  // dv_compact, dv_generate
#include "common/trees.h"
#include "par/acceptance.h"
#include "par/attention.h"
#include "shared/baselines/scratch.h"
#include "shared/baselines/threads.h"

extern "C" {

int dv_mask(assay_ctx*, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* parent,
            int64_t ldm, uint64_t* bits, int32_t* depth, int64_t* pos) {
  if (!valid_trees(B, cu, parent) || !valid_prefixes(B, P) || ldm < 0) return ASSAY_EINVAL;
  if (B == 0 || cu[B] == 0) return ASSAY_OK;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] - cu[b] > 64 * ldm) return ASSAY_EINVAL;
  }
  if (bits == nullptr || depth == nullptr || pos == nullptr) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i) {
      // A node sees what its parent sees, and itself.
      const std::int32_t up = parent[i];
      std::uint64_t* row = bits + i * ldm;
      if (up < 0) {
        std::fill(row, row + ldm, 0);
      } else {
        std::copy_n(bits + (cu[b] + up) * ldm, ldm, row);
      }
      const std::int64_t self = i - cu[b];
      row[self / 64] |= std::uint64_t{1} << (self % 64);
      depth[i] = up < 0 ? 1 : depth[cu[b] + up] + 1;
      pos[i] = P[b] + depth[i] - 1;
    }
  }
  return ASSAY_OK;
}

int dv_full_mask(assay_ctx*, int64_t P, int64_t n, const int32_t* parent, uint8_t* M) {
  if (P < 1 || n < 0 || !valid_tree(n, parent) || M == nullptr) return ASSAY_EINVAL;
  const std::int64_t side = P + n;
  std::memset(M, 0, static_cast<std::size_t>(side * side));
  for (std::int64_t i = 0; i < P; ++i)
    std::memset(M + i * side, 1, static_cast<std::size_t>(i + 1));
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint8_t* row = M + (P + i) * side;
    std::memset(row, 1, static_cast<std::size_t>(P));
    for (std::int64_t a = i; a >= 0; a = parent[a]) row[P + a] = 1;
  }
  return ASSAY_OK;
}

int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                 const int32_t* parent, const void* q, const void* const* kc, const void* const* vc,
                 void* o, float* lse) {
  if (p == nullptr || p->size != sizeof(fa_params) || p->B < 0 || p->B > INT32_MAX)
    return ASSAY_EINVAL;
  const auto B = static_cast<std::int32_t>(p->B);
  if (p->Hq < 0 || p->Hkv < 1 || p->Hq % p->Hkv != 0 || p->D < 1) return ASSAY_EINVAL;
  if (!valid_trees(B, cu, parent) || !valid_prefixes(B, P)) return ASSAY_EINVAL;
  if (B == 0 || cu[B] == 0 || p->Hq == 0) return ASSAY_OK;
  if (has_null(B, kc) || has_null(B, vc) || q == nullptr || o == nullptr) return ASSAY_EINVAL;
  if (p->Dv != p->D || p->dtype == ASSAY_F16) return ASSAY_ENOTSUP;
  if (p->dtype == ASSAY_F32) {
    return Attention<float>(p, P, cu, parent, static_cast<const float*>(q), kc, vc,
                            static_cast<float*>(o), lse)
        .run(ctx);
  }
  return Attention<std::uint16_t>(p, P, cu, parent, static_cast<const std::uint16_t*>(q), kc, vc,
                                  static_cast<std::uint16_t*>(o), lse)
      .run(ctx);
}

int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu, const int32_t* parent,
              const int32_t* token, const float* root_logits, const float* node_logits,
              const int32_t* eos, const int32_t* budget, const dv_sampling* sampling,
              int32_t* acc_node, int32_t* n_acc, int32_t* bonus) {
  if (!valid_trees(B, cu, parent)) return ASSAY_EINVAL;
  if (B == 0) return ASSAY_OK;
  const std::int64_t nodes = cu[B];
  if (V < 1 || root_logits == nullptr || n_acc == nullptr || bonus == nullptr) return ASSAY_EINVAL;
  if (nodes > 0 && (token == nullptr || node_logits == nullptr || acc_node == nullptr))
    return ASSAY_EINVAL;
  for (std::int64_t i = 0; i < nodes; ++i) {
    if (token[i] < 0 || token[i] >= V) return ASSAY_EINVAL;
  }
  for (std::int32_t b = 0; budget != nullptr && b < B; ++b) {
    if (budget[b] < 0) return ASSAY_EINVAL;
  }
  const bool greedy = sampling == nullptr || sampling->mode == DV_GREEDY;
  if (!greedy && !valid_sampling(*sampling, nodes)) return ASSAY_EINVAL;

  // Results are held back until no item can fail any more.
  const std::int64_t threads = std::clamp<std::int64_t>(ctx->nthreads, 1, B);
  const std::int64_t room = greedy ? 0 : V;
  const Scratch<std::int32_t> path(ctx, nodes), count(ctx, B), last(ctx, B);
  const Scratch<double> weights(ctx, 2 * room * threads);
  if (path.failed() || count.failed() || last.failed() || weights.failed()) return ASSAY_ENOMEM;
  std::atomic<std::int32_t> next{0};
  std::atomic<bool> nan{false};
  on_threads(threads, [&](std::int64_t t) {
    double* p = weights.data() + 2 * room * t;
    for (std::int32_t b = next++; b < B && !nan; b = next++) {
      const Walk walk{{cu[b + 1] - cu[b], parent + cu[b], token + cu[b]},
                      V,
                      eos != nullptr ? eos[b] : -1,
                      budget != nullptr ? budget[b] : INT32_MAX,
                      b,
                      cu[b],
                      root_logits,
                      node_logits,
                      greedy ? nullptr : sampling};
      if (!walk.run(path.data() + cu[b], count[b], last[b], p, p + room)) nan = true;
    }
  });
  if (nan) return ASSAY_EINVAL;
  if (nodes > 0) std::copy(path.data(), path.data() + nodes, acc_node);
  std::copy(count.data(), count.data() + B, n_acc);
  std::copy(last.data(), last.data() + B, bonus);
  return ASSAY_OK;
}

}  // extern "C"
