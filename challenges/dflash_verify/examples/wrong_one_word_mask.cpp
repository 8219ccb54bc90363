// fails: mask_deep_256 mask_wide_256 mask_n_1000
// Ancestors in one 64-bit word, the rest of the row left empty: fine up to 64 nodes.
#include "mask_rows.h"

void spoil(const Row& row) {
  std::fill_n(row.bits, row.ldm, 0);
  for (std::int64_t a = row.node; a >= 0; a = row.parent[a])
    row.bits[0] |= std::uint64_t{1} << (a % 64);
}

MASK_WITH(spoil)
