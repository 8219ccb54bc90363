#include "assay/witness.h"

#include "implementation.h"
#include "worker/call.h"

ASSAY_WITNESS()

namespace assay::dflash_verify {
namespace {

using witness::product;
using witness::Record;

// The total number of nodes, which all other sizes follow from; kNone if the offsets do not ascend.
std::int64_t nodes(std::int32_t B, const std::int64_t* cu) {
  if (B < 0 || cu == nullptr || cu[0] != 0) return witness::kNone;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] < cu[b]) return witness::kNone;
  }
  return cu[B];
}

template <class T>
void vector(Record& call, int handle, const T* data, std::int64_t count) {
  call.array(handle, data, product(count, sizeof(T)));
}

void record_mask(std::int32_t B, const std::int64_t* P, const std::int64_t* cu,
                 const std::int32_t* parent, std::int64_t ldm, const void* bits, const void* depth,
                 const void* pos) {
  using namespace mask;
  Record call(Entry::kMask);
  const std::int64_t n = nodes(B, cu);
  if (n < 0) return call.strange();
  Params params;
  params.B = B;
  params.ldm = ldm;
  call.params(params);
  vector(call, kP, P, B);
  vector(call, kCu, cu, std::int64_t{B} + 1);
  vector(call, kParent, parent, n);
  call.array(kBits, bits, 0);
  call.array(kDepth, depth, 0);
  call.array(kPos, pos, 0);
}

void record_full_mask(std::int64_t P, std::int64_t n, const std::int32_t* parent, const void* M) {
  using namespace full_mask;
  Record call(Entry::kFullMask);
  Params params;
  params.B = 1;
  params.P = P;
  params.n = n;
  call.params(params);
  vector(call, kParent, parent, n);
  call.array(kM, M, 0);
}

void record_accept(std::int32_t B, std::int32_t V, const std::int64_t* cu,
                   const std::int32_t* parent, const std::int32_t* token, const float* root_logits,
                   const float* node_logits, const std::int32_t* eos, const std::int32_t* budget,
                   const dv_sampling* sampling, const void* acc_node, const void* n_acc,
                   const void* bonus) {
  using namespace accept;
  Record call(Entry::kAccept);
  const std::int64_t n = nodes(B, cu);
  if (n < 0) return call.strange();
  Params params;
  params.B = B;
  params.V = V;
  params.null_sampling = sampling == nullptr || sampling->mode == DV_GREEDY ? 1 : 0;
  call.params(params);
  vector(call, kCu, cu, std::int64_t{B} + 1);
  vector(call, kParent, parent, n);
  vector(call, kToken, token, n);
  vector(call, kRootLogits, root_logits, product(B, V));
  vector(call, kNodeLogits, node_logits, product(n, V));
  vector(call, kEos, eos, B);
  vector(call, kBudget, budget, B);
  call.array(kAccNode, acc_node, 0);
  call.array(kNAcc, n_acc, 0);
  call.array(kBonus, bonus, 0);
}

// The keys or values of each item, as pieces of one array.
void record_rows(Record& call, int handle, const void* const* each, const fa_params& p,
                 const std::int64_t* P, const std::int64_t* cu, std::int64_t row) {
  for (std::int64_t b = 0; b < p.B; ++b)
    call.array(handle, each[b], product(witness::sum(P[b], cu[b + 1] - cu[b]), row));
}

void record_attention(const fa_params* p, const std::int64_t* P, const std::int64_t* cu,
                      const std::int32_t* parent, const void* q, const void* const* kc,
                      const void* const* vc, const void* o, const void* lse) {
  using namespace attention;
  Record call(Entry::kAttention);
  if (p == nullptr || p->B > (1 << 20)) return call.strange();
  const std::int64_t n = nodes(static_cast<std::int32_t>(p->B), cu);
  if (n < 0 || (p->B > 0 && (P == nullptr || kc == nullptr || vc == nullptr)))
    return call.strange();
  Params params;
  params.fa = *p;
  call.params(params);
  vector(call, kP, P, p->B);
  vector(call, kCu, cu, p->B + 1);
  vector(call, kParent, parent, n);
  const std::int64_t head = product(p->D, p->dtype == ASSAY_F32 ? 4 : 2);
  call.array(kQ, q, product(product(n, p->Hq), head));
  record_rows(call, kK, kc, *p, P, cu, product(p->Hkv, head));
  record_rows(call, kV, vc, *p, P, cu, product(p->Hkv, head));
  call.array(kO, o, 0);
  call.array(kLse, lse, 0);
}

void record_compact(std::int32_t B, const std::int64_t* P, const std::int64_t* cu,
                    const std::int32_t* acc_node, const std::int32_t* n_acc, std::int64_t row_bytes,
                    std::int32_t caches, const void* const* kv) {
  using namespace compact;
  Record call(Entry::kCompact);
  const std::int64_t n = nodes(B, cu);
  if (n < 0 || caches < 0 || (B > 0 && (P == nullptr || (caches > 0 && kv == nullptr))))
    return call.strange();
  Params params;
  params.B = B;
  params.row_bytes = row_bytes;
  params.caches = caches;
  call.params(params);
  vector(call, kP, P, B);
  vector(call, kCu, cu, std::int64_t{B} + 1);
  vector(call, kAccNode, acc_node, n);
  vector(call, kNAcc, n_acc, B);
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t bytes = product(witness::sum(P[b], cu[b + 1] - cu[b]), row_bytes);
    for (std::int64_t c = 0; c < caches; ++c) call.array(kKv, kv[b * caches + c], bytes);
  }
}

}  // namespace
}  // namespace assay::dflash_verify

using namespace assay::dflash_verify;

extern "C" int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                       const int32_t* parent, int64_t ldm, uint64_t* bits, int32_t* depth,
                       int64_t* pos) {
  record_mask(B, P, cu, parent, ldm, bits, depth, pos);
  return ASSAY_IMPLEMENTATION(dv_mask)(ctx, B, P, cu, parent, ldm, bits, depth, pos);
}

extern "C" int dv_full_mask(assay_ctx* ctx, int64_t P, int64_t n, const int32_t* parent,
                            uint8_t* M) {
  record_full_mask(P, n, parent, M);
  return ASSAY_IMPLEMENTATION(dv_full_mask)(ctx, P, n, parent, M);
}

extern "C" int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,
                         const int32_t* parent, const int32_t* token, const float* root_logits,
                         const float* node_logits, const int32_t* eos, const int32_t* budget,
                         const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc,
                         int32_t* bonus) {
  record_accept(B, V, cu, parent, token, root_logits, node_logits, eos, budget, sampling, acc_node,
                n_acc, bonus);
  return ASSAY_IMPLEMENTATION(dv_accept)(ctx, B, V, cu, parent, token, root_logits, node_logits,
                                         eos, budget, sampling, acc_node, n_acc, bonus);
}

extern "C" int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                            const int32_t* parent, const void* q, const void* const* kc,
                            const void* const* vc, void* o, float* lse) {
  record_attention(p, P, cu, parent, q, kc, vc, o, lse);
  return ASSAY_IMPLEMENTATION(dv_attention)(ctx, p, P, cu, parent, q, kc, vc, o, lse);
}

extern "C" int dv_compact(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                          const int32_t* acc_node, const int32_t* n_acc, int64_t row_bytes,
                          int32_t caches, void* const* kv) {
  record_compact(B, P, cu, acc_node, n_acc, row_bytes, caches, kv);
  return ASSAY_IMPLEMENTATION(dv_compact)(ctx, B, P, cu, acc_node, n_acc, row_bytes, caches, kv);
}

// Not recorded; the call is only passed on.
extern "C" int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* model, int32_t* out,
                           int64_t* n_out) {
  return ASSAY_IMPLEMENTATION(dv_generate)(ctx, loop, model, out, n_out);
}
