#include "assay/witness.h"

#include "implementation.h"
#include "worker/call.h"

ASSAY_WITNESS()

namespace assay::layer_norm_backward {
namespace {

// Records the arrays of a call; arrays that its function does not have are left out.
class Recorder {
 public:
  Recorder(Mode mode, const ln_params* p) : call_(0) {
    if (p == nullptr || (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16)) {
      call_.strange();
      return;
    }
    vector_ = witness::product(p->D, 4);
    matrix_ = witness::product(witness::product(p->rows, p->D), p->dtype == ASSAY_F32 ? 4 : 2);
    call_.params(Params{*p, mode});
  }
  Recorder& matrix(Handle handle, const void* data) {
    call_.array(handle, data, matrix_);
    return *this;
  }
  Recorder& vector(Handle handle, const float* data) {
    call_.array(handle, data, vector_);
    return *this;
  }
  // For an output array, records only whether it is there.
  Recorder& output(Handle handle, const void* data) {
    call_.array(handle, data, 0);
    return *this;
  }

 private:
  witness::Record call_;
  std::int64_t vector_ = witness::kNone, matrix_ = witness::kNone;
};

}  // namespace
}  // namespace assay::layer_norm_backward

using namespace assay::layer_norm_backward;

extern "C" size_t ln_cache_bytes(const ln_params* p) {
  return ASSAY_IMPLEMENTATION(ln_cache_bytes)(p);
}

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  Recorder(kPlain, p).matrix(kX, x).vector(kGamma, gamma).vector(kBeta, beta).output(kY, y);
  return ASSAY_IMPLEMENTATION(ln_forward)(ctx, p, x, gamma, beta, y, cache);
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  Recorder(kPlain, p)
      .matrix(kDy, dy)
      .matrix(kX, x)
      .vector(kGamma, gamma)
      .output(kDx, dx)
      .output(kDgamma, dgamma)
      .output(kDbeta, dbeta);
  return ASSAY_IMPLEMENTATION(ln_backward)(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
}

extern "C" int ln_backward_residual(assay_ctx* ctx, const ln_params* p, const void* dy,
                                    const void* x, const float* gamma, const void* cache,
                                    const void* dres, void* dx, float* dgamma, float* dbeta) {
  Recorder(kResidual, p)
      .matrix(kDy, dy)
      .matrix(kX, x)
      .vector(kGamma, gamma)
      .matrix(kDres, dres)
      .output(kDx, dx)
      .output(kDgamma, dgamma)
      .output(kDbeta, dbeta);
  return ASSAY_IMPLEMENTATION(ln_backward_residual)(ctx, p, dy, x, gamma, cache, dres, dx, dgamma,
                                                    dbeta);
}

extern "C" int rms_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                            const float* gamma, void* dx, float* dgamma) {
  Recorder(kRms, p)
      .matrix(kDy, dy)
      .matrix(kX, x)
      .vector(kGamma, gamma)
      .output(kDx, dx)
      .output(kDgamma, dgamma);
  return ASSAY_IMPLEMENTATION(rms_backward)(ctx, p, dy, x, gamma, dx, dgamma);
}
