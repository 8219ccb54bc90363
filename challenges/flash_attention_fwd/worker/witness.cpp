#include "assay/witness.h"

#include "implementation.h"
#include "worker/call.h"

ASSAY_WITNESS()

namespace assay::flash_attention_fwd {
namespace {

// Records the arrays of a call; arrays that its function does not have are left out.
class Recorder {
 public:
  Recorder(const fa_params* p, Params params) : call_(0) {
    params.p = *p;
    call_.params(params);
  }

  // Packed sequences are recorded as one item.
  void arrays(const fa_params& p, std::int64_t B, std::int64_t queries, std::int64_t keys,
              std::int64_t size, const void* q, const void* k, const void* v, const void* o,
              const void* lse) {
    rows(kQ, q, p.sq, {B, p.Hq, queries, p.D}, size);
    rows(kK, k, p.sk, {B, p.Hkv, keys, p.D}, size);
    rows(kV, v, p.sv, {B, p.Hkv, keys, p.Dv}, size);
    call_.array(kO, o, 0);
    call_.array(kLse, lse, 0);
  }
  template <class T>
  void vector(Handle handle, const T* data, std::int64_t count) {
    call_.array(handle, data, witness::product(count, sizeof(T)));
  }

 private:
  struct Shape {
    std::int64_t B, H, N, D;
  };
  // The stride of an axis with at most one element may have any value.
  static witness::Record::Axis axis(std::int64_t count, std::int64_t stride, std::int64_t size) {
    return {count, count > 1 ? witness::product(stride, size) : 0};
  }
  void rows(Handle handle, const void* data, const assay_stride& s, const Shape& n,
            std::int64_t size) {
    call_.blocks(handle, data, witness::product(n.D, size), axis(n.B, s.b, size),
                 axis(n.H, s.h, size), axis(n.N, s.n, size));
  }

  witness::Record call_;
};

std::int64_t size_of(const fa_params& p) { return p.dtype == ASSAY_F32 ? 4 : 2; }

}  // namespace
}  // namespace assay::flash_attention_fwd

using namespace assay::flash_attention_fwd;

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  if (p != nullptr) Recorder(p, {}).arrays(*p, p->B, p->Nq, p->Nk, size_of(*p), q, k, v, o, lse);
  return ASSAY_IMPLEMENTATION(fa_forward)(ctx, p, q, k, v, o, lse);
}

extern "C" int fa_forward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* e,
                                const void* q, const void* k, const void* v, void* o, float* lse) {
  if (p != nullptr) {
    Params params;
    params.entry = Entry::extra;
    params.softcap = e == nullptr ? 0 : e->softcap;
    Recorder call(p, params);
    call.arrays(*p, p->B, p->Nq, p->Nk, size_of(*p), q, k, v, o, lse);
    if (e != nullptr) {
      call.vector(kAlibi, e->alibi, p->Hq);
      call.vector(kSink, e->sink, p->Hq);
      call.vector(kKvLen, e->kv_len, p->B);
    }
  }
  return ASSAY_IMPLEMENTATION(fa_forward_extra)(ctx, p, e, q, k, v, o, lse);
}

extern "C" int fa_forward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* l,
                                 const void* q, const void* k, const void* v, void* o, float* lse) {
  if (p != nullptr && l != nullptr) {
    Params params;
    params.entry = Entry::varlen;
    params.total_q = l->total_q;
    params.total_k = l->total_k;
    Recorder call(p, params);
    call.arrays(*p, 1, l->total_q, l->total_k, size_of(*p), q, k, v, o, lse);
    call.vector(kCuQ, l->cu_q, assay::witness::sum(p->B, 1));
    call.vector(kCuK, l->cu_k, assay::witness::sum(p->B, 1));
  }
  return ASSAY_IMPLEMENTATION(fa_forward_varlen)(ctx, p, l, q, k, v, o, lse);
}

extern "C" int fa_forward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* b,
                               const float* bias, const void* q, const void* k, const void* v,
                               void* o, float* lse) {
  using assay::witness::product;
  if (p != nullptr && b != nullptr) {
    Params params;
    params.entry = Entry::bias;
    params.bias = *b;
    Recorder call(p, params);
    call.arrays(*p, p->B, p->Nq, p->Nk, size_of(*p), q, k, v, o, lse);
    call.vector(kBias, bias, product(product(b->B, b->Hq), product(b->Nq, b->Nk)));
  }
  return ASSAY_IMPLEMENTATION(fa_forward_bias)(ctx, p, b, bias, q, k, v, o, lse);
}

extern "C" int fa_forward_fp8(assay_ctx* ctx, const fa_params* p, const float* scales,
                              const uint8_t* q, const uint8_t* k, const uint8_t* v, void* o,
                              float* lse) {
  if (p != nullptr) {
    Params params;
    params.entry = Entry::fp8;
    Recorder call(p, params);
    call.arrays(*p, p->B, p->Nq, p->Nk, 1, q, k, v, o, lse);
    call.vector(kScales, scales, 3);
  }
  return ASSAY_IMPLEMENTATION(fa_forward_fp8)(ctx, p, scales, q, k, v, o, lse);
}
