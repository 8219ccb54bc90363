// fails: all_scores_below_minus_50000
// The running maximum starts at -50,000 instead of -inf. Where every score of a row is lower, all
// exponentials underflow and the row is answered with zeros (flashinfer-ai/flashinfer#4267).
#include "with_rules.h"

struct Bug : Rules {
  static float subtracted(float largest_score) { return std::max(largest_score, -5e4f); }
};

ATTEND_WITH(Bug)
