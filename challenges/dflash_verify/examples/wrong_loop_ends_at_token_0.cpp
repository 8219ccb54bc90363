// fails: generate_token_0
// Takes token 0 for the end of sequence, whatever eos is.
#define dv_generate naive_dv_generate
#include "naive.cpp"
#undef dv_generate

extern "C" int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* model, int32_t* out,
                           int64_t* n_out) {
  if (loop == nullptr) return ASSAY_EINVAL;
  dv_loop ended = *loop;
  if (ended.eos < 0) ended.eos = 0;
  return naive_dv_generate(ctx, &ended, model, out, n_out);
}
