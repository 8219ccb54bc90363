// fails: mask_n_1000
// One thread per node in a block of 256; rows after those keep what was there.
#include "mask_rows.h"

void spoil(const Row& row) {
  if (row.node >= 256) std::fill_n(row.bits, row.ldm, ~std::uint64_t{0});
}

MASK_WITH(spoil)
