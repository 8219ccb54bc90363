// Shared by the trusted parts of this challenge: scripts, the model of each operation's required
// result, and the reference.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../worker/call.h"
#include "assay/challenge.h"
#include "assay/size.h"

namespace assay::kv_cache {

// Consecutive tokens of a history, as offsets into a phase's inputs.
struct Run {
  std::int64_t phase, k_at, v_at, n;
};

// The tokens of one layer of one sequence.
struct History {
  std::vector<Run> runs;
  std::int64_t length = 0;
  std::int64_t k_row = 0, v_row = 0;  // elements of a token

  void append(const Run&);
  void truncate(std::int64_t new_length);
  // The runs of the tokens [t0, t1).
  std::vector<Run> slice(std::int64_t t0, std::int64_t t1) const;
};

// Tokens, each counted once however many sequences share it.
class DistinctTokens {
 public:
  void add(const History&, std::int64_t t0, std::int64_t t1);
  std::int64_t count() const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> tokens_;  // phase, k_at
};

struct Sequence {
  bool alive = false;
  std::int64_t cache = 0;
  std::vector<History> layers;

  std::int64_t longest() const;
};

// The first token that the row at `end` - 1 sees, sinks left out.
std::int64_t first_visible(const kvc_config&, std::int64_t end);

enum class Expect : std::uint8_t { success, invalid, full, no_memory, success_or_no_memory };

// A cache without storage: it tracks which tokens every sequence holds.
class Model {
 public:
  explicit Model(const Params& p);

  Expect apply(const Op&, const std::int64_t* pool);

  const Sequence& sequence(std::int64_t variable) const { return sequences_[to_size(variable)]; }
  bool alive(std::int64_t variable, std::int64_t cache) const;
  std::int64_t live_sequences(std::int64_t cache) const;
  std::int64_t tokens(std::int64_t cache, std::int64_t layer) const;
  // Bytes of the elements that must be kept: each token once, and only what a window can see.
  std::int64_t needed_bytes(std::int64_t cache) const;

 private:
  Expect check_batch(const Op&, const std::int64_t* pool) const;
  Expect check_trees(const Op&, const std::int64_t* pool) const;
  Expect check_shared(const Op&, const std::int64_t* pool) const;
  const History& history(const Op& op, std::int64_t variable) const {
    return sequence(variable).layers[to_size(op.layer)];
  }
  Expect append(const Op&, const std::int64_t* pool);
  Expect fork(const Op&);
  void put(std::int64_t variable, Sequence);
  const kvc_config& config(std::int64_t cache) const { return params_.config[cache]; }

  Params params_;
  std::vector<Sequence> sequences_;
  std::int64_t live_[kCaches] = {};  // how many of them
  bool has_memory_for(std::int64_t cache, std::int64_t tokens) const;
  std::int64_t allowed_[kCaches] = {-1, -1};  // bytes that the context still gives; -1: unlimited
};

// A compiled script and the sizes of everything that it touches, in elements.
struct Script {
  Params params{};
  std::vector<Op> ops;
  std::vector<std::int64_t> pool;
  std::int64_t k[2] = {}, v[2] = {}, q[2] = {};
  std::int64_t o = 0, lse = 0, read_k = 0, read_v = 0;
  std::int64_t last_read = 0;  // the phase in which tokens are read last
};

// The sizes depend only on the spec, the contents on the seed too.
Script compile_script(const CaseSpec&, std::uint64_t seed);

// The params of a case that repeats a recorded call's operations on a cache; and whether its rows
// keep the task's promises, with the script written where the adapter looks for it.
std::optional<nlohmann::json> recorded_params(const RecordedCall&);
bool adopt_inputs(const CaseSpec&, BufferViews);

void generate_inputs(const CaseSpec&, std::uint64_t seed, BufferViews);

// The required result of one operation. `attended` is for an attention that succeeds: [rows, n_q,
// Dv] and [rows, n_q]; plain: from a plain fp32 (or bf16) implementation.
struct Attended {
  std::int64_t rows = 0;
  std::vector<double> o, plain_o, scale_o, lse, plain_lse, conditioning;
  std::vector<std::int64_t> keys;  // visible to each row
};

struct Expected {
  Expect status = Expect::success;
  std::int64_t length = 0;  // kLen
  std::int64_t needed = 0;  // kBytes
  bool empty = false;       // kBytes: no tokens
  std::vector<Run> read;    // kRead
  std::unique_ptr<Attended> attended;
};

struct KvReference final : Reference {
  std::vector<Op> ops;
  std::vector<std::int64_t> pool;
  std::vector<Expected> expected;
};

std::unique_ptr<KvReference> make_reference(const Params&, BufferViews);

CheckResult check_outputs(const CaseSpec&, const Params&, const KvReference&, BufferViews);

}  // namespace assay::kv_cache
