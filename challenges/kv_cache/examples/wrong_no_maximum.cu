// fails: score_spike
// Exponentials of the scores as they are: fine until one of them passes 88.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "abi.h"

#define fmaxf(max, score) 0.0f
#include "naive.cu"
