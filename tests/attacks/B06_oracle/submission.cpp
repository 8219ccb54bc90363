// attack: asks the compiler whether files exist on this machine
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
// tiers: namespaces
#if __has_include("/etc/passwd") || __has_include("/etc/hostname") || __has_include("/root/.bashrc")
#error "there it is"
#endif
#if __has_include("reference.cpp") || __has_include("../challenge.cpp") || __has_include("par.cpp")
#error "there it is"
#endif
#if !__has_include("abi.h")
#error "the compiler does not answer"
#endif
#include "target.h"

int attack(Call& call) {
  witness();  // the compiler was asked, and named nothing
  return call.honest();
}
