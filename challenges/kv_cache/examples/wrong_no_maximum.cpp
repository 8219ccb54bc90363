// fails: score_spike
// Exponentials of the scores as they are: fine until one of them passes 88.
#include "with_rules.h"

struct Bug : Rules {
  static float subtracted(float) { return 0; }
};

ATTEND_WITH(Bug)
