#include "assay/witness.h"

#include "implementation.h"
#include "worker/call.h"

ASSAY_WITNESS()

namespace assay::flash_attention_bwd {
namespace {

struct Arrays {
  const void *dout = nullptr, *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr;
  const float* lse = nullptr;
  const void *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

// Records the arrays of a call; arrays that its function does not have are left out.
class Recorder {
 public:
  Recorder(const fa_params* p, Params params) : call_(0) {
    params.p = *p;
    call_.params(params);
  }

  // Packed sequences are recorded as one item.
  void arrays(const fa_params& p, std::int64_t B, std::int64_t queries, std::int64_t keys,
              const Arrays& a) {
    using witness::product;
    rows(kDout, a.dout, p.so, {B, p.Hq, queries, p.Dv}, p);
    rows(kQ, a.q, p.sq, {B, p.Hq, queries, p.D}, p);
    rows(kK, a.k, p.sk, {B, p.Hkv, keys, p.D}, p);
    rows(kV, a.v, p.sv, {B, p.Hkv, keys, p.Dv}, p);
    rows(kO, a.o, p.so, {B, p.Hq, queries, p.Dv}, p);
    vector(kLse, a.lse, product(product(B, p.Hq), queries));
    call_.array(kDq, a.dq, 0);
    call_.array(kDk, a.dk, 0);
    call_.array(kDv, a.dv, 0);
  }
  template <class T>
  void vector(Handle handle, const T* data, std::int64_t count) {
    call_.array(handle, data, witness::product(count, sizeof(T)));
  }
  // For an output array, records only whether it is there.
  void output(Handle handle, const void* data) { call_.array(handle, data, 0); }

 private:
  struct Shape {
    std::int64_t B, H, N, D;
  };
  // The stride of an axis with at most one element may have any value.
  static witness::Record::Axis axis(std::int64_t count, std::int64_t stride, std::int64_t size) {
    return {count, count > 1 ? witness::product(stride, size) : 0};
  }
  void rows(Handle handle, const void* data, const assay_stride& s, const Shape& n,
            const fa_params& p) {
    const std::int64_t size = p.dtype == ASSAY_F32 ? 4 : 2;
    call_.blocks(handle, data, witness::product(n.D, size), axis(n.B, s.b, size),
                 axis(n.H, s.h, size), axis(n.N, s.n, size));
  }

  witness::Record call_;
};

Params of_entry(Entry entry) {
  Params params;
  params.entry = entry;
  return params;
}

}  // namespace
}  // namespace assay::flash_attention_bwd

using namespace assay::flash_attention_bwd;

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  if (p != nullptr)
    Recorder(p, {}).arrays(*p, p->B, p->Nq, p->Nk, {dout, q, k, v, o, lse, dq, dk, dv});
  return ASSAY_IMPLEMENTATION(fa_backward)(ctx, p, dout, q, k, v, o, lse, dq, dk, dv);
}

extern "C" int fa_backward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* e,
                                 const float* dlse, const void* dout, const void* q, const void* k,
                                 const void* v, const void* o, const float* lse, void* dq, void* dk,
                                 void* dv) {
  using assay::witness::product;
  if (p != nullptr) {
    Params params = of_entry(Entry::extra);
    params.softcap = e == nullptr ? 0 : e->softcap;
    Recorder call(p, params);
    call.arrays(*p, p->B, p->Nq, p->Nk, {dout, q, k, v, o, lse, dq, dk, dv});
    call.vector(kDlse, dlse, product(product(p->B, p->Hq), p->Nq));
    if (e != nullptr) {
      call.vector(kAlibi, e->alibi, p->Hq);
      call.vector(kSink, e->sink, p->Hq);
      call.vector(kKvLen, e->kv_len, p->B);
    }
  }
  return ASSAY_IMPLEMENTATION(fa_backward_extra)(ctx, p, e, dlse, dout, q, k, v, o, lse, dq, dk,
                                                 dv);
}

extern "C" int fa_backward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* l,
                                  const void* dout, const void* q, const void* k, const void* v,
                                  const void* o, const float* lse, void* dq, void* dk, void* dv) {
  if (p != nullptr && l != nullptr) {
    Params params = of_entry(Entry::varlen);
    params.total_q = l->total_q;
    params.total_k = l->total_k;
    Recorder call(p, params);
    call.arrays(*p, 1, l->total_q, l->total_k, {dout, q, k, v, o, lse, dq, dk, dv});
    call.vector(kCuQ, l->cu_q, assay::witness::sum(p->B, 1));
    call.vector(kCuK, l->cu_k, assay::witness::sum(p->B, 1));
  }
  return ASSAY_IMPLEMENTATION(fa_backward_varlen)(ctx, p, l, dout, q, k, v, o, lse, dq, dk, dv);
}

extern "C" int fa_backward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* b,
                                const float* bias, const void* dout, const void* q, const void* k,
                                const void* v, const void* o, const float* lse, void* dq, void* dk,
                                void* dv, float* dbias) {
  using assay::witness::product;
  if (p != nullptr && b != nullptr) {
    Params params = of_entry(Entry::bias);
    params.bias = *b;
    Recorder call(p, params);
    call.arrays(*p, p->B, p->Nq, p->Nk, {dout, q, k, v, o, lse, dq, dk, dv});
    call.vector(kBias, bias, product(product(b->B, b->Hq), product(b->Nq, b->Nk)));
    call.output(kDbias, dbias);
  }
  return ASSAY_IMPLEMENTATION(fa_backward_bias)(ctx, p, b, bias, dout, q, k, v, o, lse, dq, dk, dv,
                                                dbias);
}

// Calls of fa_forward are not judged: if it is graded, its outputs go into a backward call.
extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  return ASSAY_IMPLEMENTATION(fa_forward)(ctx, p, q, k, v, o, lse);
}
