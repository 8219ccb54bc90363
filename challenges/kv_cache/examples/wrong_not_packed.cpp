// fails: quant_overhead
// Says that it quantises, and keeps everything in 32 bits.
#define kvc_create naive_kvc_create
#include "naive.cpp"
#undef kvc_create

extern "C" int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  const int status = naive_kvc_create(ctx, config, out);
  if (status == ASSAY_OK) (*out)->c.quant = 0;
  return status;
}
