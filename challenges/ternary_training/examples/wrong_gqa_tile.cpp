// fails: gqa_tile
// Query head j uses key head j mod Hkv: the heads are tiled, not grouped.
#include "with_pass.h"

struct Bug : Pass {
  using Pass::Pass;
  Index key_head(Index head) const override { return head % c_.Hkv; }
};

RUN_WITH(Bug)
