// attack: keeps the compiler busy: instances of templates, or a constant that takes hours
// challenge: fused_softmax_topk
// cases: basic
// expect: CE-limit | CE
// variants: templates constant
// fast: none
// deadline: 300
// witness: verdict CE-limit
// witness: compiler 'constexpr' loop iteration count exceeds limit
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}

#if ATTACK_VARIANT == 0
template <unsigned N, unsigned M>
struct Grow {
  static constexpr unsigned value = Grow<N - 1, M * 2>::value + Grow<N - 1, M * 2 + 1>::value;
};
template <unsigned M>
struct Grow<0, M> {
  static constexpr unsigned value = M;
};
unsigned grown = Grow<26, 1>::value;
#else
constexpr unsigned long long endless() {
  unsigned long long n = 0;
  for (unsigned long long i = 0; i < 1ull << 40; ++i) n += i * n;
  return n;
}
constexpr auto value = endless();
unsigned long long kept = value;
#endif
