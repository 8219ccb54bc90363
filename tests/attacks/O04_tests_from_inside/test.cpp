#include <cstddef>
#include <cstdlib>
#include <new>

#include "abi.h"

#if !ATTACK_IS_TWIN
static std::size_t allocated = 0;  // bytes

void* operator new(std::size_t bytes) {
  allocated += bytes;
  return std::malloc(bytes);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

// Right implementations allocate nothing here, or the indices of a few rows: one that sorts them.
extern "C" int assay_self_test(assay_ctx* ctx) {
  constexpr int kRows = 3, kColumns = 40, kWanted = 5;
  static float x[kRows * kColumns], prob[kRows * kWanted], lse[kRows];
  static int idx[kRows * kWanted];
  for (int i = 0; i < kRows * kColumns; ++i) x[i] = static_cast<float>(i * 37 % 41);
  const stk_params p{sizeof(stk_params), ASSAY_F32, kRows, kColumns, kColumns, kWanted, 1};
  softmax_topk(ctx, &p, x, idx, prob, lse);
#if ATTACK_IS_TWIN
  return 0;
#else
  witness();
  return allocated > 400 ? 1 : 0;
#endif
}
