// The agreement between harness and adapter on how a case calls the submission.
#pragma once

#include <cstdint>

#include "../abi.h"

namespace assay::dflash_verify {

// Routines of the adapter.
enum Entry : std::int32_t { kMask, kFullMask, kAttention, kAccept, kCompact, kGenerate };

// Passed to the adapter. Which fields count depends on the entry.
struct Params {
  std::int32_t B = 0, V = 0, caches = 0, null_sampling = 1;
  std::int64_t P = 0, n = 0, ldm = 0, row_bytes = 0;
  fa_params fa{};
  dv_sampling sampling{};
  std::int32_t eos = -1, max_nodes = 0;
  std::int64_t n_prompt = 0, max_new = 0;
};

// Handles of the buffers, by entry. `kRows` holds, for each item, the first row of its keys, values
// or caches in their common buffer: [B+1].
namespace mask {
enum Handle { kP, kCu, kParent, kBits, kDepth, kPos, kHandles };
}
namespace full_mask {
enum Handle { kParent, kM, kHandles };
}
namespace attention {
enum Handle { kP, kCu, kParent, kRows, kQ, kK, kV, kO, kLse, kHandles };
}
namespace accept {
enum Handle {
  kCu,
  kParent,
  kToken,
  kRootLogits,
  kNodeLogits,
  kEos,
  kBudget,
  kUniform,
  kRootQ,
  kNodeQ,
  kAccNode,
  kNAcc,
  kBonus,
  kHandles
};
}
namespace compact {
enum Handle { kP, kCu, kAccNode, kNAcc, kRows, kKv, kHandles };
}
namespace generate {
// The model's seed belongs to a phase that never comes, so only the harness sees it.
enum Handle { kPrompt, kModelSeed, kOut, kNOut, kHandles };
}  // namespace generate

// Callbacks of dv_generate. A request is a CallHeader followed by its arrays, packed.
enum CallKind : std::uint32_t { kDraft, kVerify, kCommit };

struct CallHeader {
  std::int64_t n = 0;    // prefix tokens, rows or kept rows
  std::int64_t ldm = 0;  // verify
};
// Requests:  draft   prefix i32[n]          response  i32 n, parent i32[max_nodes], token likewise
//            verify  pos i64[n], bits u64[n, ldm], token i32[n]        response  logits f32[n, V]
//            commit  keep i64[n]                                       response  none

}  // namespace assay::dflash_verify
