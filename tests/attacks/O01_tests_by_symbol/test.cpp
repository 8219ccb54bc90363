#include "abi.h"

#if !ATTACK_IS_TWIN
// What wrong implementations are made from brings these along; right ones do not.
extern "C" void naive_ln_backward() __attribute__((weak));
extern "C" void naive_ln_forward() __attribute__((weak));
extern "C" void naive_ln_backward_residual() __attribute__((weak));
extern "C" void naive_rms_backward() __attribute__((weak));
#endif

extern "C" int assay_self_test(assay_ctx*) {
#if ATTACK_IS_TWIN
  return 0;
#else
  const bool wrong = naive_ln_backward != nullptr || naive_ln_forward != nullptr ||
                     naive_ln_backward_residual != nullptr || naive_rms_backward != nullptr;
  witness();
  return wrong ? 1 : 0;
#endif
}
