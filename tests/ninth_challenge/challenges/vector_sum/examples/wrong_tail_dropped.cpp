// fails: tail
// Groups of eight elements, and no loop for the rest.
#define vector_sum naive_vector_sum
#include "naive.cpp"
#undef vector_sum

extern "C" int vector_sum(assay_ctx* ctx, const vs_params* p, const float* x, float* sum) {
  vs_params whole = *p;
  if (p->n > 0) whole.n = p->n / 8 * 8;
  return naive_vector_sum(ctx, &whole, x, sum);
}
