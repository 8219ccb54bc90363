// fails: neg_init
// The running maximum starts at 0: when all scores are far below, every weight underflows.
#include "tiled.h"

struct Bug : Right {
  static constexpr float kFirstMax = 0;
};

TILED_FORWARD(Bug)
