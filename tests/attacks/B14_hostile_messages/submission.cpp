// attack: makes the compiler print escapes, markup and megabytes
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// variants: escapes flood
// hidden: \x1b[
// witness: compiler #error "\x1b[2J</pre>
// witness: compiler a long message that is printed again and again
#if ATTACK_VARIANT == 0
#error "\x1b[2J</pre><script>alert(1)</script> | [x](javascript:1) `"
_Pragma("message(\"\033[2J\")")
#define ESC "[2J"
    static_assert(false, "[31mred");
#else
template <int N>
struct Loud {
  static_assert(N < 0, "a long message that is printed again and again");
  [[deprecated("a warning that is printed again and again")]] static int f();
  static int g() { return f() + Loud<N - 1>::g(); }
};
template <>
struct Loud<0> {
  static int g() { return 0; }
};
int loud = Loud<800>::g();
#error "and it fails"
#endif
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
