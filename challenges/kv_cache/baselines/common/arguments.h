// Which arguments are legal.
#pragma once

#include <cstdint>
#include <vector>

#include "abi.h"

namespace {

bool valid(const kvc_config& c) {
  return c.size == sizeof(kvc_config) && (c.dtype == ASSAY_F32 || c.dtype == ASSAY_BF16) &&
         c.n_layers >= 1 && c.n_q >= 1 && c.n_kv >= 1 && c.n_q % c.n_kv == 0 && c.D >= 1 &&
         c.Dv >= 0 && c.max_seqs >= 0 && c.max_tokens >= 0 && c.max_len >= 0 && c.sinks >= 0 &&
         (c.window == -1 || c.window > 0) && (c.quant == 0 || c.quant == 4 || c.quant == 8);
}

// Of a call on a batch of sequences.
template <class Cache>
int check_batch(const Cache* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                const std::int64_t* cu) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || n < 0) return ASSAY_EINVAL;
  if (n == 0) return ASSAY_OK;
  if (slots == nullptr || cu == nullptr || cu[0] != 0) return ASSAY_EINVAL;
  std::vector<bool> seen(static_cast<std::size_t>(cache->c.max_seqs));
  for (std::int32_t b = 0; b < n; ++b) {
    if (!cache->known(slots[b])) return ASSAY_ESTATE;
    if (cu[b + 1] < cu[b] || seen[static_cast<std::size_t>(slots[b])]) return ASSAY_EINVAL;
    seen[static_cast<std::size_t>(slots[b])] = true;
  }
  return ASSAY_OK;
}

}  // namespace
