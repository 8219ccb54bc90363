// fails: scores_below_minus_100000
// Hidden scores are set to -100,000. Where the scores that a node does see are lower still, it
// attends to its siblings instead (TransformerLensOrg/TransformerLens#318).
#include "masked_attention.h"

struct Bug : Mask {
  static constexpr bool kAdditive = true;
  static float hidden(float) { return -1e5f; }
};

ATTEND_WITH(Bug)
