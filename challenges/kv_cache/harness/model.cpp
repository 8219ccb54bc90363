// Models what a cache must do: which calls succeed, and which tokens every sequence then holds.
#include <algorithm>
#include <set>
#include <utility>

#include "assay/error.h"
#include "assay/size.h"
#include "trusted.h"

namespace assay::kv_cache {

void History::append(const Run& run) {
  if (run.n == 0) return;
  runs.push_back(run);
  length += run.n;
}

void History::truncate(std::int64_t new_length) {
  while (length > new_length) {
    Run& last = runs.back();
    const std::int64_t cut = std::min(last.n, length - new_length);
    last.n -= cut;
    length -= cut;
    if (last.n == 0) runs.pop_back();
  }
}

std::int64_t Sequence::longest() const {
  std::int64_t most = 0;
  for (const History& h : layers) most = std::max(most, h.length);
  return most;
}

Model::Model(const Params& p) : params_(p), sequences_(to_size(p.variables)) {}

bool Model::alive(std::int64_t variable, std::int64_t cache) const {
  if (variable < 0 || variable >= params_.variables) return false;
  const Sequence& s = sequence(variable);
  return s.alive && s.cache == cache;
}

std::int64_t Model::live_sequences(std::int64_t cache) const { return live_[cache]; }

void Model::put(std::int64_t variable, Sequence sequence) {
  Sequence& place = sequences_[to_size(variable)];
  if (place.alive) --live_[place.cache];
  place = std::move(sequence);
  if (place.alive) ++live_[place.cache];
}

std::int64_t Model::tokens(std::int64_t cache, std::int64_t layer) const {
  std::int64_t sum = 0;
  for (const Sequence& s : sequences_) {
    if (s.alive && s.cache == cache) sum += s.layers[to_size(layer)].length;
  }
  return sum;
}

std::int64_t first_visible(const kvc_config& c, std::int64_t end) {
  return c.window > 0 ? std::max<std::int64_t>(0, end - c.window) : 0;
}

std::int64_t Model::needed_bytes(std::int64_t cache) const {
  const kvc_config& c = config(cache);
  DistinctTokens tokens;
  for (const Sequence& s : sequences_) {
    if (!s.alive || s.cache != cache) continue;
    for (const History& h : s.layers) {
      tokens.add(h, first_visible(c, h.length), h.length);
    }
  }
  const std::int64_t elements = tokens.count() * c.n_kv * (c.D + c.Dv);
  return c.quant == 0 ? elements * params_.element_bytes : elements * c.quant / 8;
}

std::vector<Run> History::slice(std::int64_t t0, std::int64_t t1) const {
  std::vector<Run> out;
  std::int64_t at = 0;
  for (const Run& run : runs) {
    const std::int64_t from = std::max(t0, at), to = std::min(t1, at + run.n);
    if (from < to) {
      out.push_back(
          {run.phase, run.k_at + (from - at) * k_row, run.v_at + (from - at) * v_row, to - from});
    }
    at += run.n;
  }
  return out;
}

void DistinctTokens::add(const History& history, std::int64_t t0, std::int64_t t1) {
  for (const Run& run : history.slice(t0, t1)) {
    for (std::int64_t t = 0; t < run.n; ++t)
      tokens_.emplace_back(run.phase, run.k_at + t * history.k_row);
  }
}

std::int64_t DistinctTokens::count() const {
  auto tokens = tokens_;
  std::ranges::sort(tokens);
  return std::unique(tokens.begin(), tokens.end()) - tokens.begin();
}

namespace {

bool well_formed(const kvc_config& c) {
  return c.size == sizeof(kvc_config) && (c.dtype == ASSAY_F32 || c.dtype == ASSAY_BF16) &&
         c.n_layers >= 1 && c.n_q >= 1 && c.n_kv >= 1 && c.n_q % c.n_kv == 0 && c.D >= 1 &&
         c.max_seqs >= 0 && c.max_tokens >= 0 && c.max_len >= 0 &&
         (c.window == -1 || c.window > 0) && (c.quant == 0 || c.quant == 4 || c.quant == 8) &&
         c.Dv >= 0 && c.sinks >= 0;
}

}  // namespace

Expect Model::check_batch(const Op& op, const std::int64_t* pool) const {
  if ((op.flags & (kNullSlots | kNullCu | kNegativeBatch)) != 0) return Expect::invalid;
  if (op.layer < 0 || op.layer >= config(op.cache).n_layers) return Expect::invalid;
  const std::int64_t *slots = pool + op.pool, *cu = slots + op.n;
  // An array without elements may be NULL.
  if ((op.flags & (kNullK | kNullV)) != 0 && op.n > 0 && cu[op.n] > 0) return Expect::invalid;
  std::set<std::int64_t> seen;
  for (std::int64_t b = 0; b < op.n; ++b) {
    if (!alive(slots[b], op.cache) || !seen.insert(slots[b]).second) return Expect::invalid;
    if (cu[b + 1] < cu[b]) return Expect::invalid;
  }
  return Expect::success;
}

// Every parent must come before its child, and all nodes must be cached.
Expect Model::check_trees(const Op& op, const std::int64_t* pool) const {
  if ((op.flags & kNullParent) != 0) return Expect::invalid;
  const std::int64_t *slots = pool + op.pool, *cu = slots + op.n, *parent = cu + op.n + 1;
  for (std::int64_t b = 0; b < op.n; ++b) {
    const std::int64_t nodes = cu[b + 1] - cu[b];
    if (nodes > history(op, slots[b]).length) return Expect::invalid;
    for (std::int64_t i = 0; i < nodes; ++i) {
      if (parent[cu[b] + i] < -1 || parent[cu[b] + i] >= i) return Expect::invalid;
    }
  }
  return Expect::success;
}

// Scripts keep the caller's promise that the shared tokens are the same.
Expect Model::check_shared(const Op& op, const std::int64_t* pool) const {
  const std::int64_t* slots = pool + op.pool;
  for (std::int64_t b = 0; b < op.n; ++b) {
    if (op.shared < 0 || op.shared > history(op, slots[b]).length) return Expect::invalid;
  }
  const auto tokens = [&](std::int64_t variable) {
    std::vector<std::pair<std::int64_t, std::int64_t>> all;  // phase, k_at
    const History& h = history(op, variable);
    for (const Run& run : h.slice(0, op.shared)) {
      for (std::int64_t t = 0; t < run.n; ++t) all.emplace_back(run.phase, run.k_at + t * h.k_row);
    }
    return all;
  };
  for (std::int64_t b = 1; b < op.n; ++b) {
    if (tokens(slots[0]) != tokens(slots[b])) {
      throw Error("kv_cache: a script calls tokens shared that are not");
    }
  }
  return Expect::success;
}

// While memory is restricted, scripts append far more than any cache has in stock.
bool Model::has_memory_for(std::int64_t cache, std::int64_t tokens) const {
  const std::int64_t allowed = allowed_[cache];
  if (allowed <= 0) return allowed < 0;
  const kvc_config& c = config(cache);
  if (tokens * c.n_kv * (c.D + c.Dv) * params_.element_bytes < allowed + allowed / 4)
    throw Error("kv_cache: whether there is memory for an append depends on the cache");
  return false;
}

Expect Model::append(const Op& op, const std::int64_t* pool) {
  const kvc_config& c = config(op.cache);
  const std::int64_t *slots = pool + op.pool, *cu = slots + op.n;
  const auto layer = to_size(op.layer);
  for (std::int64_t b = 0; b < op.n; ++b) {
    const std::int64_t length = sequence(slots[b]).layers[layer].length;
    if (length + cu[b + 1] - cu[b] > c.max_len) return Expect::full;
  }
  if (tokens(op.cache, op.layer) + cu[op.n] > c.max_tokens) return Expect::full;
  if (!has_memory_for(op.cache, cu[op.n])) return Expect::no_memory;
  for (std::int64_t b = 0; b < op.n; ++b) {
    sequences_[to_size(slots[b])].layers[layer].append({op.phase, op.k_at + cu[b] * c.n_kv * c.D,
                                                        op.v_at + cu[b] * c.n_kv * c.Dv,
                                                        cu[b + 1] - cu[b]});
  }
  return Expect::success;
}

Expect Model::fork(const Op& op) {
  if (!alive(op.sequence, op.cache) || (op.flags & kNullV) != 0) return Expect::invalid;
  const kvc_config& c = config(op.cache);
  if (live_sequences(op.cache) >= c.max_seqs) return Expect::full;
  for (std::int64_t l = 0; l < c.n_layers; ++l) {
    const std::int64_t more = sequence(op.sequence).layers[to_size(l)].length;
    if (tokens(op.cache, l) + more > c.max_tokens) return Expect::full;
  }
  put(op.forked, sequence(op.sequence));
  return Expect::success;
}

Expect Model::apply(const Op& op, const std::int64_t* pool) {
  const kvc_config& c = config(op.cache);
  switch (op.kind) {
    case kCreate:
      if (op.field != kFieldNone || (op.flags & (kNullK | kNullV)) != 0) return Expect::invalid;
      if (!well_formed(c)) throw Error("kv_cache: a configuration of spec.json is not well formed");
      return Expect::success;
    case kDestroy:
      for (Sequence& s : sequences_) s.alive = s.alive && s.cache != op.cache;
      live_[op.cache] = 0;
      return Expect::success;
    case kNew: {
      if ((op.flags & kNullV) != 0) return Expect::invalid;
      if (live_sequences(op.cache) >= c.max_seqs) return Expect::full;
      Sequence s;
      s.alive = true;
      s.cache = op.cache;
      const History empty{{}, 0, std::int64_t{c.n_kv} * c.D, std::int64_t{c.n_kv} * c.Dv};
      s.layers.assign(to_size(c.n_layers), empty);
      put(op.sequence, std::move(s));
      return Expect::success;
    }
    case kFree:
      if (!alive(op.sequence, op.cache)) return Expect::invalid;
      put(op.sequence, {});
      return Expect::success;
    case kTruncate: {
      if (!alive(op.sequence, op.cache)) return Expect::invalid;
      Sequence& s = sequences_[to_size(op.sequence)];
      if (op.length < 0 || op.length > s.longest()) return Expect::invalid;
      for (History& h : s.layers) h.truncate(op.length);
      return Expect::success;
    }
    case kFork: return fork(op);
    case kAllow: allowed_[op.cache] = op.bytes; return Expect::success;
    case kAppend: {
      const Expect batch = check_batch(op, pool);
      return batch == Expect::success ? append(op, pool) : batch;
    }
    case kAttend: return check_batch(op, pool);
    case kAttendTree:
    case kAttendShared: {
      const Expect batch = check_batch(op, pool);
      if (batch != Expect::success) return batch;
      return op.kind == kAttendTree ? check_trees(op, pool) : check_shared(op, pool);
    }
    case kDefragment:
      if ((op.flags & kNullCache) != 0) return Expect::invalid;
      return allowed_[op.cache] >= 0 ? Expect::success_or_no_memory : Expect::success;
    case kRead: {
      if (!alive(op.sequence, op.cache) || op.layer < 0 || op.layer >= c.n_layers)
        return Expect::invalid;
      const History& h = sequence(op.sequence).layers[to_size(op.layer)];
      const bool range = op.from >= 0 && op.from <= op.until && op.until <= h.length;
      return range && (op.flags & (kNullK | kNullV)) == 0 ? Expect::success : Expect::invalid;
    }
    default: return Expect::success;
  }
}

}  // namespace assay::kv_cache
