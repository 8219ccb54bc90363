// attack: loads a library that does its work: the matrices of BLAS, OpenMP's, a cipher's, or a file by its
// path
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
// variants: blas installed by-path
#include <dlfcn.h>
#include <fcntl.h>

#include "target.h"

int attack(Call& call) {
#if ATTACK_VARIANT == 0
  for (const char* name : {"libopenblas.so.0", "libblas.so.3", "libcblas.so.3", "liblapack.so.3",
                           "libmkl_rt.so", "libgsl.so.27"}) {
    if (dlopen(name, RTLD_NOW | RTLD_GLOBAL) != nullptr) return kGotIt;
  }
#elif ATTACK_VARIANT == 1
  for (const char* name : {"libcrypto.so.3", "libssl.so.3", "libz.so.1", "liblzma.so.5",
                           "libseccomp.so.2", "libpython3.11.so.1.0"}) {
    if (dlopen(name, RTLD_NOW) != nullptr) return kGotIt;
  }
#else
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/lib/x86_64-linux-gnu/libz.so.1",
        "/usr/lib/x86_64-linux-gnu/liblzma.so.5", "/usr/local/cuda/lib64/libcudart.so",
        "/usr/bin/env"}) {
    if (open(path, O_RDONLY | O_CLOEXEC) >= 0) return kGotIt;
  }
#endif
  witness();
  return call.honest();
}
