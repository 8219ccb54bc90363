// fails: mask_positions mask_deep_256
// Counts depth from the root as 1 and forgets to take that 1 off the position.
#include "mask_rows.h"

void spoil(const Row& row) { row.pos = row.P + row.depth; }

MASK_WITH(spoil)
