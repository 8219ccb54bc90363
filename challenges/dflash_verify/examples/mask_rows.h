// For examples whose dv_mask is the right one but for what it leaves in some rows.
#pragma once

#define dv_mask naive_dv_mask
#include "naive.cpp"
#undef dv_mask

namespace {

// What is written for one node of an item.
struct Row {
  std::int64_t node;           // of its item
  const std::int32_t* parent;  // of the item's nodes
  std::int64_t P, ldm;
  std::uint64_t* bits;
  std::int32_t& depth;
  std::int64_t& pos;
};

template <class Spoil>
int mask_with(Spoil spoil, assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
              const int32_t* parent, int64_t ldm, uint64_t* bits, int32_t* depth, int64_t* pos) {
  const int status = naive_dv_mask(ctx, B, P, cu, parent, ldm, bits, depth, pos);
  for (std::int32_t b = 0; status == ASSAY_OK && b < B; ++b) {
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i)
      spoil(Row{i - cu[b], parent + cu[b], P[b], ldm, bits + i * ldm, depth[i], pos[i]});
  }
  return status;
}

}  // namespace

// At the end of the file.
#define MASK_WITH(spoil)                                                                     \
  extern "C" int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,     \
                         const int32_t* parent, int64_t ldm, uint64_t* bits, int32_t* depth, \
                         int64_t* pos) {                                                     \
    return mask_with(spoil, ctx, B, P, cu, parent, ldm, bits, depth, pos);                   \
  }
