// fails: logits_mode
// The exponentials of the logits are formed without subtracting the largest, and overflow.
#include <cmath>
#include <vector>

#include "abi.h"

#define fmax(max, logit) 0.0
#include "naive.cu"
