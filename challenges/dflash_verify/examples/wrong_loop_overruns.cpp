// fails: generate_budget
// Tests the limit between cycles only and reports all tokens of the last cycle.
#define dv_generate naive_dv_generate
#include "naive.cpp"
#undef dv_generate

extern "C" int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* model, int32_t* out,
                           int64_t* n_out) {
  if (loop == nullptr || model == nullptr || loop->max_new < 1) {
    return naive_dv_generate(ctx, loop, model, out, n_out);
  }
  dv_loop longer = *loop;
  longer.max_new += model->max_nodes;
  const Scratch<std::int32_t> text(ctx, longer.max_new);
  const int status = naive_dv_generate(ctx, &longer, model, text.data(), n_out);
  if (status == ASSAY_OK) std::copy_n(text.data(), loop->max_new, out);
  return status;
}
