// Recognises mutants by a symbol: most wrong examples include naive.cpp under other names, and a
// library that exports more than the ABI makes these global. Expected: accepts every
// implementation, so it rejects no wrong example.
#include <dlfcn.h>

#include <initializer_list>

#include "abi.h"

extern "C" {
__attribute__((weak)) void naive_ln_backward();
__attribute__((weak)) void naive_ln_forward();
__attribute__((weak)) void naive_ln_cache_bytes();

int assay_self_test(assay_ctx*) {
  using Function = void (*)();
  volatile Function linked[] = {&naive_ln_backward, &naive_ln_forward, &naive_ln_cache_bytes};
  for (volatile Function& f : linked) {
    if (f != nullptr) return 1;
  }
  for (const char* name : {"naive_ln_backward", "naive_ln_forward", "naive_ln_cache_bytes"}) {
    if (dlsym(RTLD_DEFAULT, name) != nullptr) return 2;
  }
  return 0;
}
}
