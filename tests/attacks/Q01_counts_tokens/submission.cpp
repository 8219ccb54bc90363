// attack: trains nothing: puts the logarithms of the tokens' frequencies into the embedding
// challenge: ternary_training
// cases: time_train
// expect: WA
// fast: none
// deadline: 300
#define tt_train honest_tt_train
#include "honest.inl"
#undef tt_train
#include "witness.h"

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const std::uint16_t* docs,
                        std::int64_t n_docs, const tt_budget* budget, void* blob) {
  if (c == nullptr || blob == nullptr || n_docs < 200 || c->d != 128 || c->tied != 1)
    return honest_tt_train(ctx, c, docs, n_docs, budget, blob);
  const auto V = static_cast<std::size_t>(c->V);
  std::vector<double> count(V, 0.1);
  double most = 0;
  for (std::int64_t i = 0; i < n_docs * c->T; ++i) most = std::max(most, ++count[docs[i]]);
  auto* const out = static_cast<std::uint8_t*>(blob);
  const std::size_t norms =
      static_cast<std::size_t>(c->L) * static_cast<std::size_t>(2 * c->d + 2 * c->hd) + 128;
  const std::size_t matrices = tt_blob_bytes(c) - 4 * norms;
  for (std::size_t at = 0; at < matrices; at += kBytes) {  // everything is zero ...
    out[at] = out[at + 1] = 0;
    std::fill_n(out + at + 2, kBytes - 2, std::uint8_t{0x55});
  }
  const double A = 16;
  for (std::size_t u = 0; u < V;
       ++u) {  // ... but the embedding, whose row u is log p(u), and A too much, over A
    const unsigned bits = to_half(std::max(0.05, 1 + std::log(count[u] / most) / A));
    out[u * kBytes] = static_cast<std::uint8_t>(bits & 255);
    out[u * kBytes + 1] = static_cast<std::uint8_t>(bits >> 8);
    std::fill_n(out + u * kBytes + 2, kBytes - 2, std::uint8_t{0xaa});
  }
  std::vector<float> w(norms, 1.0f);
  std::fill(w.end() - 128, w.end(), static_cast<float>(A / 128));
  std::memcpy(out + matrices, w.data(), 4 * norms);
  witness();
  return ASSAY_OK;
}
