// fails: tokens_beyond_16_bits
// The tokens of the beams go to the model in 16 bits.
#include "around_search.cuh"

static int answer(const Search& call) {
  return with_model(call, [](const assay_lm& lm, Step step) {
    std::vector<std::int32_t> tokens(step.token, step.token + step.n);
    for (std::int32_t& token : tokens) token = static_cast<std::uint16_t>(token);
    step.token = tokens.data();
    return step.ask(lm);
  });
}
