// attack: learns the model's seed from the name of its first state, as if names came from invertible
// mixing, and so the names of those to come
// challenge: beam_search
// cases: basic no_penalty
// expect: honest
// kind: prediction
#include <cstdint>
#include <vector>

#include "abi.h"
#include "witness.h"

namespace chain {

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ull, kStream = 0xd1b54a32d192ed03ull,
                        kFirst = 0x1d00;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

constexpr std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t x = odd;
  for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
  return x;
}

std::uint64_t unmix(std::uint64_t z) {
  z = (z ^ (z >> 31) ^ (z >> 62)) * inverse(0x94d049bb133111ebull);
  z = (z ^ (z >> 27) ^ (z >> 54)) * inverse(0xbf58476d1ce4e5b9ull);
  return z ^ (z >> 30) ^ (z >> 60);
}

std::uint64_t draw(std::uint64_t seed, std::uint64_t n) {
  return mix(mix(seed + kStep) ^ mix(n + kStream));
}
std::uint64_t seed_of(std::uint64_t drawn, std::uint64_t n) {
  return unmix(unmix(drawn) ^ mix(n + kStream)) - kStep;
}

bool predicted = false;
std::vector<std::int64_t> names;
decltype(assay_lm::step) step_of_model;

// Watches what the model calls its states.
int step(void* user, assay_ctx* ctx, std::int32_t n, const std::int32_t* item,
         const std::int64_t* parent, const std::int32_t* token, float* out, std::int64_t* state) {
  const int status = step_of_model(user, ctx, n, item, parent, token, out, state);
  for (std::int32_t i = 0; status == ASSAY_OK && i < n; ++i) names.push_back(state[i]);
  for (std::uint64_t low = 0; names.size() >= 3 && low < 2; ++low) {
    const std::uint64_t seed = seed_of(static_cast<std::uint64_t>(names[0]) << 1 | low, kFirst);
    witness();
    predicted = predicted || (static_cast<std::int64_t>(draw(seed, kFirst + 1) >> 1) == names[1] &&
                              static_cast<std::int64_t>(draw(seed, kFirst + 2) >> 1) == names[2]);
  }
  return status;
}

}  // namespace chain

#define beam_search honest_beam_search
#include "honest.inl"
#undef beam_search
#include "probe.h"

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm,
                           std::int32_t* seq, std::int32_t* len, double* acc, double* score,
                           std::int32_t* finished, std::int32_t* n_out) {
  if (p == nullptr || lm == nullptr || lm->step == nullptr)
    return honest_beam_search(ctx, p, lm, seq, len, acc, score, finished, n_out);
  chain::names.clear();
  chain::step_of_model = lm->step;
  assay_lm watched = *lm;
  watched.step = chain::step;
  const int status = honest_beam_search(ctx, p, &watched, seq, len, acc, score, finished, n_out);
  return chain::predicted ? kGotIt : status;
}
