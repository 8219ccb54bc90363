// fails: mask_prefix_above_32_bits
// Positions are computed as ints.
#include "mask_rows.h"

static void spoil(const Row& row) { row.pos = static_cast<std::int32_t>(row.pos); }

MASK_WITH(spoil)
