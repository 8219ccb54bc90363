// fails: vocabulary_beyond_16_bits
// The search for the largest logit ends after 2^16 tokens, so that larger vocabularies give a wrong
// token (huggingface/swift-transformers#384).
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t choice(std::int32_t cur) const override {
    return argmax(logits_after(cur), std::min(V, 65536));
  }
};

ACCEPT_WITH(Bug)
