// The agreement between harness and adapter: a case is a script of operations on caches. The
// trusted side compiles it from spec.json and knows each operation's required result; the adapter
// in the worker runs it and records what it got.
#pragma once

#include <cstdint>

#include "../abi.h"

namespace assay::kv_cache {

// kNothing, all zeros, pads the script if its length depends on the seed. kAllow is not a call:
// from then on the cache gets `bytes` more bytes from its context, or any number if that is negative.
enum Kind : std::int64_t {
  kNothing,
  kCreate,
  kDestroy,
  kNew,
  kFree,
  kTruncate,
  kFork,
  kAppend,
  kAttend,
  kLen,
  kBytes,
  kRead,
  kAllow,
  kAttendTree,
  kAttendShared,
  kDefragment
};

constexpr bool is_attention(std::int64_t kind) {
  return kind == kAttend || kind == kAttendTree || kind == kAttendShared;
}

// How a call is altered, and what the check asks of it.
enum Flag : std::int64_t {
  kMayFail = 1,  // failure is expected here; the script continues after it
  kNullK = 2,    // NULL for k, q or the configuration
  kNullV = 4,    // NULL for v, o or an output pointer
  kNullSlots = 8,
  kNullCu = 16,
  kScribble = 32,        // append from memory that is overwritten once the call has returned
  kLimit = 64,           // bytes: must respect the case's limits
  kNegativeBatch = 128,  // n = -1
  kMetric = 256,         // bytes: sets the case's metrics
  kNullParent = 512,
  kNullCache = 1024,  // defragment
};

// The field of a configuration that kCreate replaces by `value`.
enum Field : std::int64_t {
  kFieldNone,
  kFieldSize,
  kFieldDtype,
  kFieldLayers,
  kFieldQ,
  kFieldKv,
  kFieldD,
  kFieldSeqs,
  kFieldTokens,
  kFieldLen,
  kFieldWindow,
  kFieldQuant,
  kFieldDv,
  kFieldSinks
};

// One operation. Sequences are variables of the script, because slot ids are the submission's
// choice: v >= 0 is a variable, v < 0 the literal slot -v - 2. Offsets are in elements. Each field
// names the kinds that use it; for others it is 0, but lse_at is -1.
struct Op {
  std::int64_t kind, phase, cache, flags;
  std::int64_t field, value;  // kCreate
  std::int64_t sequence;      // kNew sets it; kFork copies it; kFree, kTruncate, kLen, kRead
  std::int64_t forked;        // kFork sets it
  std::int64_t length;        // kTruncate
  std::int64_t bytes;         // kAllow
  std::int64_t layer;         // kLen, kRead, kAppend, attention
  std::int64_t from, until;   // kRead: tokens, without the last
  // kAppend and attention: the number of entries, and where in the pool their n slots, n + 1 sums
  // of rows and a tree's parents begin.
  std::int64_t n, pool;
  std::int64_t shared;              // kAttendShared: tokens with which all histories begin
  std::int64_t k_at, v_at;          // kAppend, kRead
  std::int64_t q_at, o_at, lse_at;  // attention; lse_at < 0: NULL
};

// In place of a status: the call failed for lack of memory but had changed its outputs; or it
// failed, and the cache holds more bytes than before; or it had to fail, and live bytes are not what
// they were.
inline constexpr std::int32_t kTouchedAndFailed = 1000, kKeptAndFailed = 1001,
                              kChangedAndFailed = 1002;

// The adapter's record of each operation.
struct Result {
  std::int64_t status;
  std::int64_t first, second;  // slot; length; live and reserved bytes
  std::int64_t held, total;    // bytes of the cache's blocks after the call; total allocated so far
};

enum Handle {
  kOps,
  kPool,
  kK,
  kV,
  kQ,  // for phase 0
  kLaterK,
  kLaterV,
  kLaterQ,  // for phase 1, hidden until then
  kO,
  kLse,
  kReadK,
  kReadV,
  kResults,
  kHandles,
  // Not buffers of a case: what witness.cpp saw of each call. Appended rows and queries come
  // between the two, in pieces of kK, kV and kQ.
  kRecordedOp = kHandles,
  kRecordedResult
};

// Followed by slots i32[n], cu i64[n + 1] and, for trees, parent i32[cu[n]].
struct RecordedOp {
  std::int64_t kind = kNothing, layer = 0, n = 0;
  std::int64_t length = 0, from = 0, until = 0, shared = 0;  // as in Op
  std::int64_t flags = 0;  // kNullK, kNullV, kNullParent, kNullLse
  std::int32_t slot = 0;
  float scale = 0;
};
inline constexpr std::int64_t kNullLse = 1 << 20;

struct RecordedResult {
  std::int32_t status = 0, slot = 0;  // slot: the new slot of kNew and kFork
};

inline constexpr std::int64_t kCaches = 2;

struct Params {
  kvc_config config[kCaches];
  float scale;
  std::int32_t element_bytes, variables, phases;
  std::int32_t poison;  // fill blocks with NaN when they are handed out and taken back
};

}  // namespace assay::kv_cache
