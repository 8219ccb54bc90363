// fails: nan_query
// Scores that are not above the maximum by comparison count as masked: a NaN vanishes.
#include "tiled.h"

struct Bug : Right {
  static float weight(float s, float max) { return s <= max ? std::exp(s - max) : 0.0f; }
};

TILED_FORWARD(Bug)
