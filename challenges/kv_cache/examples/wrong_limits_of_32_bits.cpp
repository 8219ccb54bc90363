// fails: limits_above_32_bits
// The bounds on tokens and lengths are kept as numbers of 32 bits.
#define kvc_create naive_kvc_create
#include "naive.cpp"
#undef kvc_create

extern "C" int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (config == nullptr) return ASSAY_EINVAL;
  kvc_config c = *config;
  c.max_tokens = static_cast<std::uint32_t>(c.max_tokens);
  c.max_len = static_cast<std::uint32_t>(c.max_len);
  return config->max_tokens < 0 || config->max_len < 0 ? ASSAY_EINVAL
                                                       : naive_kvc_create(ctx, &c, out);
}
