// Emits a script's operations and keeps the model of their required results in step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "assay/error.h"
#include "assay/random.h"
#include "assay/size.h"
#include "trusted.h"

namespace assay::kv_cache {

using Entries = std::vector<std::pair<std::int64_t, std::int64_t>>;  // variable, rows

constexpr std::int64_t kNoLse = 1 << 20;  // a flag in scripts only

// Emits operations and keeps the model in step.
class ScriptBuilder {
 public:
  ScriptBuilder(const CaseSpec& spec, std::int64_t variables) : model_(begin(spec, variables)) {}

  Script take() {
    for (std::int64_t cache = 0; cache < kCaches; ++cache) {
      if (exists_[cache]) destroy(cache);
    }
    script_.params.phases = static_cast<std::int32_t>(phase_ + 1);
    return std::move(script_);
  }

  const kvc_config& config(std::int64_t cache) const { return script_.params.config[cache]; }
  const Model& model() const { return model_; }
  const Script& script() const { return script_; }

  void next_phase() {
    if (++phase_ > 2) throw Error("kv_cache: a script has at most three phases");
  }

  void create(std::int64_t cache, std::int64_t flags, std::int64_t field = 0,
              std::int64_t value = 0) {
    Op op = blank(kCreate, cache, flags);
    op.field = field;
    op.value = value;
    exists_[cache] = emit(op) == Expect::success || exists_[cache];
  }
  void destroy(std::int64_t cache) {
    emit(blank(kDestroy, cache, 0));
    exists_[cache] = false;
  }
  void open(std::int64_t cache, std::int64_t variable, std::int64_t flags) {
    Op op = blank(kNew, cache, flags);
    op.sequence = variable;
    emit(op);
  }
  void close(std::int64_t cache, std::int64_t variable) {
    Op op = blank(kFree, cache, 0);
    op.sequence = variable;
    emit(op);
  }
  void fork(std::int64_t cache, std::int64_t from, std::int64_t to, std::int64_t flags) {
    Op op = blank(kFork, cache, flags);
    op.sequence = from;
    op.forked = to;
    emit(op);
  }
  void truncate(std::int64_t cache, std::int64_t variable, std::int64_t length) {
    Op op = blank(kTruncate, cache, 0);
    op.sequence = variable;
    op.length = length;
    emit(op);
  }
  void length(std::int64_t cache, std::int64_t layer, std::int64_t variable) {
    Op op = blank(kLen, cache, 0);
    op.layer = layer;
    op.sequence = variable;
    emit(op);
  }
  void allow(std::int64_t cache, std::int64_t bytes) {
    Op op = blank(kAllow, cache, 0);
    op.bytes = bytes;
    emit(op);
  }
  void bytes(std::int64_t cache, std::int64_t flags) { emit(blank(kBytes, cache, flags)); }
  void defragment(std::int64_t cache, std::int64_t flags) {
    emit(blank(kDefragment, cache, flags));
  }

  void read(std::int64_t cache, std::int64_t layer, std::int64_t variable, std::int64_t from,
            std::int64_t until, std::int64_t flags) {
    script_.last_read = phase_;
    Op op = blank(kRead, cache, flags);
    op.layer = layer;
    op.sequence = variable;
    op.from = from;
    op.until = until;
    op.k_at = script_.read_k;
    op.v_at = script_.read_v;
    const kvc_config& c = config(cache);
    script_.read_k += std::max<std::int64_t>(until - from, 0) * c.n_kv * c.D;
    script_.read_v += std::max<std::int64_t>(until - from, 0) * c.n_kv * c.Dv;
    emit(op);
  }

  // What was counted must be there, not given up since nothing would ask for it: reads a token of
  // each sequence, or of 64, drawn among those that its next row sees. How many depends on the
  // script alone.
  void read_any(std::int64_t cache, Random& random) {
    constexpr std::size_t kMost = 64;
    std::vector<std::pair<std::int64_t, std::int64_t>> filled;  // variable, layer
    for (std::int64_t v = 0; v < script_.params.variables; ++v) {
      if (!model_.alive(v, cache)) continue;
      std::vector<std::int64_t> layers;
      for (std::int64_t l = 0; l < config(cache).n_layers; ++l) {
        const std::int64_t length = model_.sequence(v).layers[to_size(l)].length;
        if (first_visible(config(cache), length + 1) < length) layers.push_back(l);
      }
      if (!layers.empty())
        filled.emplace_back(v, layers[to_size(random.below(std::ssize(layers)))]);
    }
    if (filled.size() > kMost) {
      shuffle(filled, random);
      filled.resize(kMost);
    }
    for (const auto& [v, l] : filled) {
      const std::int64_t length = model_.sequence(v).layers[to_size(l)].length;
      const std::int64_t first = first_visible(config(cache), length + 1);
      const std::int64_t t = first + random.below(length - first);
      read(cache, l, v, t, t + 1, 0);
    }
  }

  void append(std::int64_t cache, std::int64_t layer, const Entries& entries, std::int64_t flags) {
    Op op = batch(kAppend, cache, layer, entries, flags);
    const kvc_config& c = config(cache);
    op.k_at = script_.k[phase_];
    op.v_at = script_.v[phase_];
    script_.k[phase_] += rows_of(entries) * c.n_kv * c.D;
    script_.v[phase_] += rows_of(entries) * c.n_kv * c.Dv;
    emit(op);
  }

  void attend(std::int64_t cache, std::int64_t layer, const Entries& entries, std::int64_t flags) {
    attend(batch(kAttend, cache, layer, entries, flags & ~kNoLse), entries, flags);
  }

  void attend_shared(std::int64_t cache, std::int64_t layer, const Entries& entries,
                     std::int64_t shared, std::int64_t flags) {
    Op op = batch(kAttendShared, cache, layer, entries, flags & ~kNoLse);
    op.shared = shared;
    attend(op, entries, flags);
  }

  // `parents` holds the parents of all entries' nodes, entry by entry.
  void attend_tree(std::int64_t cache, std::int64_t layer, const Entries& entries,
                   const std::vector<std::int64_t>& parents, std::int64_t flags) {
    const Op op = batch(kAttendTree, cache, layer, entries, flags & ~kNoLse);
    script_.pool.insert(script_.pool.end(), parents.begin(), parents.end());
    attend(op, entries, flags);
  }

 private:
  void attend(Op op, const Entries& entries, std::int64_t flags) {
    const std::int64_t cache = op.cache;
    const kvc_config& c = config(cache);
    const std::int64_t rows = rows_of(entries);
    op.q_at = script_.q[phase_];
    op.o_at = script_.o;
    op.lse_at = (flags & kNoLse) != 0 ? -1 : script_.lse;
    script_.q[phase_] += rows * c.n_q * c.D;
    script_.o += rows * c.n_q * c.Dv;
    if (op.lse_at >= 0) script_.lse += rows * c.n_q;
    emit(op);
  }

  Params begin(const CaseSpec&, std::int64_t variables);

  Op blank(Kind kind, std::int64_t cache, std::int64_t flags) const {
    Op op{};
    op.kind = kind;
    op.cache = cache;
    op.phase = phase_;
    op.flags = flags;
    op.lse_at = -1;
    return op;
  }

  // A negative count makes the sums decrease.
  Op batch(Kind kind, std::int64_t cache, std::int64_t layer, const Entries& entries,
           std::int64_t flags) {
    Op op = blank(kind, cache, flags);
    if (phase_ > 1) throw Error("kv_cache: the last of three phases has no inputs");
    op.layer = layer;
    op.n = static_cast<std::int64_t>(entries.size());
    op.pool = static_cast<std::int64_t>(script_.pool.size());
    for (const auto& [variable, rows] : entries) script_.pool.push_back(variable);
    std::int64_t sum = 0;
    script_.pool.push_back(0);
    for (const auto& [variable, rows] : entries) script_.pool.push_back(sum += rows);
    return op;
  }

  static std::int64_t rows_of(const Entries& entries) {
    std::int64_t sum = 0;
    for (const auto& [variable, rows] : entries) sum += rows;
    return sum;
  }

  Expect emit(Op op) {
    const Expect expect = model_.apply(op, script_.pool.data());
    if (expect != Expect::success) op.flags |= kMayFail;
    script_.ops.push_back(op);
    return expect;
  }

  Script script_;
  Model model_;
  std::int64_t phase_ = 0;
  bool exists_[kCaches] = {};
};

// The scripts of spec.json: text, random operations within limits, and a ragged batch that decodes.
Script compile_text(const CaseSpec&, std::uint64_t seed);
Script compile_random(const CaseSpec&, std::uint64_t seed);
Script compile_ragged(const CaseSpec&, std::uint64_t seed);

}  // namespace assay::kv_cache
