// fails: mask_positions mask_wide_256 mask_ragged
// Gives a node the position of its slot, P + i, and not that of its depth; a model without
// positions hides it.
#include "mask_rows.h"

void spoil(const Row& row) { row.pos = row.P + row.node; }

MASK_WITH(spoil)
