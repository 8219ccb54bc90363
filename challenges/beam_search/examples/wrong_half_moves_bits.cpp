// fails: half_f16 half_f16_subnormal
// An f16 is widened by moving its exponent and fraction and adding to the exponent: subnormal
// numbers and -inf become something else.
#define beam_search_with_options naive_with_options
#include "naive.cpp"
#undef beam_search_with_options

namespace {

class Variant final : public OptionSearch {
 public:
  using OptionSearch::OptionSearch;

  float half(std::uint16_t bits) const override {
    if (o_.row_dtype == ASSAY_BF16) return OptionSearch::half(bits);
    const float magnitude =
        std::ldexp(1.0f + static_cast<float>(bits & 0x3ff) / 1024.0f, ((bits >> 10) & 31) - 15);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }
};

}  // namespace

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p,
                                        const bs_options* options, const assay_lm* lm, int32_t* seq,
                                        int32_t* len, double* acc, double* score, int32_t* finished,
                                        int32_t* n_out) {
  return run_search<Variant>(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});
}
