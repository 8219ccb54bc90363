// attack: copies keys and values to the host before the clock runs, and attends there, where nothing that
// it computes has a price
// challenge: kv_cache
// cases: decode_one_long
// expect: honest | WA
// dimension: performance
// deadline: 400
// fast: none
#define kvc_create honest_kvc_create
#define kvc_append honest_kvc_append
#define kvc_attend honest_kvc_attend
#include "honest.inl"
#undef kvc_create
#undef kvc_append
#undef kvc_attend
#include <algorithm>
#include <cmath>
#include <vector>

#include "probe.h"

// Of the one sequence that the case has.
static kvc_config config;
static std::vector<float> keys, values;

static void take(std::vector<float>& all, const void* rows, std::size_t n) {
  all.resize(all.size() + n);
  cudaMemcpy(all.data() + all.size() - n, rows, n * 4, cudaMemcpyDeviceToHost);
}

extern "C" int kvc_create(assay_ctx* ctx, const kvc_config* c, kvc** out) {
  config = *c;
  keys.clear();
  values.clear();
  return honest_kvc_create(ctx, c, out);
}

extern "C" int kvc_append(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                          const std::int64_t* cu, const void* k, const void* v) {
  const std::size_t row =
      static_cast<std::size_t>(config.n_kv) * static_cast<std::size_t>(config.D);
  take(keys, k, static_cast<std::size_t>(cu[n]) * row);
  take(values, v, static_cast<std::size_t>(cu[n]) * row);
  return honest_kvc_append(cache, layer, n, slots, cu, k, v);
}

extern "C" int kvc_attend(kvc*, std::int32_t, std::int32_t, const std::int32_t*,
                          const std::int64_t*, const void* q, float scale, void* o, float* lse) {
  const auto H = static_cast<std::size_t>(config.n_q), D = static_cast<std::size_t>(config.D),
             kv = static_cast<std::size_t>(config.n_kv), L = keys.size() / (kv * D);
  std::vector<float> query(H * D), out(H * D), sums(H);
  std::vector<double> weight(L);
  cudaMemcpy(query.data(), q, query.size() * 4, cudaMemcpyDeviceToHost);
  for (std::size_t h = 0; h < H; ++h) {
    const std::size_t g = h / (H / kv);
    double most = -INFINITY, sum = 0;
    for (std::size_t t = 0; t < L; ++t) {
      double s = 0;
      for (std::size_t d = 0; d < D; ++d)
        s += double{query[h * D + d]} * keys[(t * kv + g) * D + d];
      weight[t] = s * scale;
      most = std::max(most, weight[t]);
    }
    for (double& w : weight) sum += w = std::exp(w - most);
    for (std::size_t d = 0; d < D; ++d) {
      double x = 0;
      for (std::size_t t = 0; t < L; ++t) x += weight[t] * values[(t * kv + g) * D + d];
      out[h * D + d] = static_cast<float>(x / sum);
    }
    sums[h] = static_cast<float>(most + std::log(sum));
  }
  cudaMemcpy(o, out.data(), out.size() * 4, cudaMemcpyHostToDevice);
  if (lse != nullptr) cudaMemcpy(lse, sums.data(), sums.size() * 4, cudaMemcpyHostToDevice);
  witness();
  return ASSAY_OK;
}
