// fails: norm_of_another_epsilon
// The norms add 1e-6 whatever the configuration says (apache/tvm#15856).
#include "with_config.h"

static void misread(tt_config& c) { c.eps = 1e-6f; }

LOGITS_OF(misread)
