// attack: lacks the function that it must have, or has data of that name
// challenge: fused_softmax_topk
// cases: basic
// expect: LE | RE
// variants: missing data
// witness: finding the function softmax_topk is missing
// witness: finding invalid memory access
#if ATTACK_VARIANT == 0
extern "C" int softmax_topk_(void) { return 0; }
#else
extern "C" const int softmax_topk[4] = {1, 2, 3, 4};
#endif
