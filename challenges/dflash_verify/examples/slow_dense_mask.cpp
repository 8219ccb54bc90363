// slow: attention_2048 attention_8192
// Right but slow: visits every pair of node and key and climbs the tree for each pair of nodes,
// after having computed it all once before.
#include "masked_attention.h"

ATTEND_WITH(Mask)
