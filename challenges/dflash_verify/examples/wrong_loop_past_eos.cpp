// fails: generate_eos
// Does not end the loop at the end of sequence.
#define dv_generate naive_dv_generate
#include "naive.cpp"
#undef dv_generate

extern "C" int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* model, int32_t* out,
                           int64_t* n_out) {
  if (loop == nullptr) return ASSAY_EINVAL;
  dv_loop endless = *loop;
  endless.eos = -1;
  return naive_dv_generate(ctx, &endless, model, out, n_out);
}
