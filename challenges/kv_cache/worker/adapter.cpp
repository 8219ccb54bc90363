// Runs a case's script against the submission's cache and records its answers.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "assay/poison.h"
#include "assay/worker.h"
#include "call.h"

namespace assay::kv_cache {
namespace {

using worker::Call;

// A context that counts what one cache holds.
class CountingContext {
 public:
  void attach(Call& call, bool poison) {
    call_ = &call;
    base_ = call.ctx();
    poison_ = poison;
    ctx_ = *base_;
    ctx_.alloc = &allocate;
    ctx_.free = &release;
    ctx_.priv = this;
  }

  assay_ctx* ctx() { return &ctx_; }

  // Bytes that may still be handed out; negative: no limit.
  void allow(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    allowed_ = bytes;
  }
  std::int64_t held() {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  std::int64_t total() {
    const std::lock_guard lock(mutex_);
    return total_;
  }
  // Whether the harness has refused an allocation since the last call. Refusals due to allow() do
  // not count.
  bool take_refusal() { return refused_.exchange(false); }

 private:
  static void* allocate(assay_ctx* ctx, std::size_t bytes, std::size_t align, int space) {
    auto& self = *static_cast<CountingContext*>(ctx->priv);
    if (!self.spend(static_cast<std::int64_t>(bytes))) return nullptr;
    void* p = self.base_->alloc(self.base_, bytes, align, space);
    if (p == nullptr) {
      self.refused_ = true;
      return nullptr;
    }
    if (self.poison_) self.call_->fill(p, 0xff, bytes);
    const std::lock_guard lock(self.mutex_);
    self.blocks_[p] = bytes;
    self.held_ += static_cast<std::int64_t>(bytes);
    self.total_ += static_cast<std::int64_t>(bytes);
    return p;
  }

  bool spend(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (allowed_ < 0) return true;
    if (bytes > allowed_) return false;
    allowed_ -= bytes;
    return true;
  }

  static void release(assay_ctx* ctx, void* p) {
    auto& self = *static_cast<CountingContext*>(ctx->priv);
    {
      const std::lock_guard lock(self.mutex_);
      const auto block = self.blocks_.find(p);
      if (block == self.blocks_.end()) return;
      if (self.poison_) self.call_->fill(p, 0xff, block->second);
      self.held_ -= static_cast<std::int64_t>(block->second);
      self.blocks_.erase(block);
    }
    self.base_->free(self.base_, p);
  }

  assay_ctx ctx_{};
  Call* call_ = nullptr;
  assay_ctx* base_ = nullptr;
  bool poison_ = false;
  std::atomic<bool> refused_{false};
  std::mutex mutex_;
  std::unordered_map<void*, std::size_t> blocks_;
  std::int64_t held_ = 0, total_ = 0, allowed_ = -1;
};

// A copy of rows to which a cache must not keep a pointer, in the same kind of memory.
struct Scribbled {
  void* data;
  std::size_t bytes;
};

// State that lives from a case's first operation to its last.
struct State {
  CountingContext context[kCaches];
  kvc* cache[kCaches] = {};
  std::vector<std::int32_t> slots;  // by variable
  std::vector<Scribbled> scribbled;
  bool stopped = false;
};

class Script {
 public:
  Script(Call& call, State& state)
      : call_(call),
        p_(call.params_as<Params>()),
        state_(state),
        results_(call.as<Result>(kResults)) {}

  std::int32_t run() {
    const auto* ops = call_.as<Op>(kOps);
    const std::size_t n = call_.bytes(kOps) / sizeof(Op);
    for (std::size_t i = 0; i < n && !state_.stopped; ++i) {
      if (ops[i].kind == kNothing || ops[i].phase != call_.phase()) continue;
      if (carry_out(ops[i], results_[i]) == ASSAY_ENOTSUP || lacking_) return ASSAY_ENOTSUP;
    }
    return ASSAY_OK;
  }

 private:
  template <class F>
  F* fn(const char* name) {
    return call_.fn<F>(name);
  }

  // The submission lacks an optional function.
  std::int32_t lacking() {
    lacking_ = true;
    return ASSAY_ENOTSUP;
  }

  std::int32_t carry_out(const Op& op, Result& result) {
    Result got{-1, -1, -1, 0, 0};
    state_.context[op.cache].take_refusal();
    got.status = watched(op, got);
    // The harness may refuse one allocation of the case. The call must then fail without a trace,
    // and succeed when repeated.
    if (got.status == ASSAY_ENOMEM && state_.context[op.cache].take_refusal()) {
      got = {-1, -1, -1, 0, 0};
      got.status = left_alone(op) ? watched(op, got) : kTouchedAndFailed;
    }
    got.held = state_.context[op.cache].held();
    got.total = state_.context[op.cache].total();
    result = got;
    // After an unexpected failure, further results mean nothing.
    if (got.status != ASSAY_OK && (op.flags & kMayFail) == 0) state_.stopped = true;
    return (op.flags & kMayFail) == 0 ? static_cast<std::int32_t>(got.status) : ASSAY_OK;
  }

  // A call that fails must leave what the cache holds as it was.
  std::int32_t watched(const Op& op, Result& r) {
    const std::int64_t held = state_.context[op.cache].held(), live = live_bytes(op);
    const std::int32_t status = dispatch(op, r);
    if (status == ASSAY_OK || lacking_) return status;
    r.first = held;
    r.second = state_.context[op.cache].held();
    if (r.second > held) return kKeptAndFailed;
    r.first = live;
    r.second = live_bytes(op);
    return live >= 0 && r.second != live ? kChangedAndFailed : status;
  }

  // Negative: not asked for, or not told. Asked for only where a call is to fail: another call might
  // help an answer that has not finished the last one.
  std::int64_t live_bytes(const Op& op) {
    kvc* cache = state_.cache[op.cache];
    std::int64_t live = -1, reserved = -1;
    if ((op.flags & kMayFail) == 0 || cache == nullptr || op.kind == kAllow) return -1;
    const int status = fn<decltype(kvc_bytes)>("kvc_bytes")(cache, &live, &reserved);
    return status == ASSAY_OK ? live : -1;
  }

  // Whether an operation's outputs still hold the harness's poison.
  bool left_alone(const Op& op) {
    const kvc_config& c = p_.config[op.cache];
    const std::int64_t Dv = c.Dv > 0 ? c.Dv : c.D;
    if (is_attention(op.kind)) {
      const std::int64_t rows = (call_.as<std::int64_t>(kPool) + op.pool)[2 * op.n] * c.n_q;
      return is_poison(element(kO, op.o_at), rows * Dv * p_.element_bytes) &&
             (op.lse_at < 0 || is_poison(call_.as<float>(kLse) + op.lse_at, rows * 4));
    }
    return true;
  }

  bool is_poison(const void* data, std::int64_t bytes) {
    std::vector<std::uint16_t> halves(static_cast<std::size_t>(bytes) / 2);
    call_.copy(halves.data(), data, halves.size() * 2);
    return is_unwritten(halves.data(), halves.size() * 2);
  }

  std::int32_t dispatch(const Op& op, Result& r) {
    kvc*& cache = state_.cache[op.cache];
    switch (op.kind) {
      case kCreate: return create(op, cache);
      case kDestroy:
        fn<decltype(kvc_destroy)>("kvc_destroy")(cache);
        cache = nullptr;
        return ASSAY_OK;
      case kNew: {
        std::int32_t slot = -1;
        const int status = fn<decltype(kvc_seq_new)>("kvc_seq_new")(
            cache, (op.flags & kNullV) != 0 ? nullptr : &slot);
        return take_slot(op.sequence, slot, status, r);
      }
      case kFree: return fn<decltype(kvc_seq_free)>("kvc_seq_free")(cache, slot_of(op.sequence));
      case kTruncate:
        return fn<decltype(kvc_truncate)>("kvc_truncate")(cache, slot_of(op.sequence), op.length);
      case kFork: {
        std::int32_t slot = -1;
        const int status = fn<decltype(kvc_fork)>("kvc_fork")(
            cache, slot_of(op.sequence), (op.flags & kNullV) != 0 ? nullptr : &slot);
        return take_slot(op.forked, slot, status, r);
      }
      case kAppend: return append(op, cache);
      case kAttend:
      case kAttendTree:
      case kAttendShared: return attend(op, cache);
      case kDefragment: {
        auto* defragment = fn<decltype(kvc_defragment)>("kvc_defragment");
        if (defragment == nullptr) return lacking();
        return defragment((op.flags & kNullCache) != 0 ? nullptr : cache);
      }
      case kLen:
        r.first = fn<decltype(kvc_len)>("kvc_len")(cache, static_cast<std::int32_t>(op.layer),
                                                   slot_of(op.sequence));
        return ASSAY_OK;
      case kAllow: state_.context[op.cache].allow(op.bytes); return ASSAY_OK;
      case kBytes: return fn<decltype(kvc_bytes)>("kvc_bytes")(cache, &r.first, &r.second);
      case kRead:
        return fn<decltype(kvc_read)>("kvc_read")(
            cache, static_cast<std::int32_t>(op.layer), slot_of(op.sequence), op.from, op.until,
            (op.flags & kNullK) != 0 ? nullptr : element(kReadK, op.k_at),
            (op.flags & kNullV) != 0 ? nullptr : element(kReadV, op.v_at));
    }
    return ASSAY_EINTERNAL;
  }

  std::int32_t create(const Op& op, kvc*& cache) {
    CountingContext& context = state_.context[op.cache];
    context.attach(call_, p_.poison != 0);
    kvc_config config = p_.config[op.cache];
    // The first cache leaves the width of values at its default if possible.
    if (op.cache == 0 && config.Dv == config.D) config.Dv = 0;
    if (op.field != kFieldNone) bend(config, op.field, op.value);
    kvc* made = nullptr;
    const int status = fn<decltype(kvc_create)>("kvc_create")(
        context.ctx(), (op.flags & kNullK) != 0 ? nullptr : &config,
        (op.flags & kNullV) != 0 ? nullptr : &made);
    if (status == ASSAY_OK) cache = made;
    return status == ASSAY_OK && made == nullptr ? ASSAY_EINTERNAL : status;
  }

  // Replaces one field of a configuration.
  static void bend(kvc_config& config, std::int64_t field, std::int64_t value) {
    const auto small = static_cast<std::int32_t>(value);
    switch (field) {
      case kFieldSize: config.size = static_cast<std::uint32_t>(value); break;
      case kFieldDtype: config.dtype = small; break;
      case kFieldLayers: config.n_layers = small; break;
      case kFieldQ: config.n_q = small; break;
      case kFieldKv: config.n_kv = small; break;
      case kFieldD: config.D = small; break;
      case kFieldSeqs: config.max_seqs = small; break;
      case kFieldTokens: config.max_tokens = value; break;
      case kFieldLen: config.max_len = value; break;
      case kFieldWindow: config.window = small; break;
      case kFieldQuant: config.quant = small; break;
      case kFieldDv: config.Dv = small; break;
      case kFieldSinks: config.sinks = small; break;
      default: break;
    }
  }

  std::int32_t take_slot(std::int64_t variable, std::int32_t slot, int status, Result& r) {
    r.first = slot;
    if (status == ASSAY_OK) state_.slots[static_cast<std::size_t>(variable)] = slot;
    return status;
  }

  std::int32_t slot_of(std::int64_t v) const {
    return v < 0 ? static_cast<std::int32_t>(-v - 2) : state_.slots[static_cast<std::size_t>(v)];
  }

  void* element(int buffer, std::int64_t at) {
    auto* base = call_.as<std::byte>(buffer);
    return base == nullptr ? nullptr : base + at * p_.element_bytes;
  }

  struct Batch {
    std::vector<std::int32_t> slots;
    std::vector<std::int64_t> cu;
    std::vector<std::int32_t> parent;
  };

  Batch batch_of(const Op& op) const {
    Batch batch;
    const auto* pool = call_.as<std::int64_t>(kPool) + op.pool;
    for (std::int64_t b = 0; b < op.n; ++b) batch.slots.push_back(slot_of(pool[b]));
    batch.cu.assign(pool + op.n, pool + 2 * op.n + 1);
    const auto* parent = pool + 2 * op.n + 1;
    if (op.kind == kAttendTree) batch.parent.assign(parent, parent + batch.cu.back());
    return batch;
  }

  static std::int32_t count_of(const Op& op) {
    return (op.flags & kNegativeBatch) != 0 ? -1 : static_cast<std::int32_t>(op.n);
  }

  std::int32_t append(const Op& op, kvc* cache) {
    const Batch batch = batch_of(op);
    const std::int64_t rows = batch.cu.back();
    const kvc_config& c = p_.config[op.cache];
    const bool later = call_.phase() == 1;
    const void* k = element(later ? kLaterK : kK, op.k_at);
    const void* v = element(later ? kLaterV : kV, op.v_at);
    if ((op.flags & kScribble) != 0) {
      k = copied(k, rows * c.n_kv * c.D);
      v = copied(v, rows * c.n_kv * c.Dv);
    }
    const int status = fn<decltype(kvc_append)>("kvc_append")(
        cache, static_cast<std::int32_t>(op.layer), count_of(op),
        (op.flags & kNullSlots) != 0 ? nullptr : batch.slots.data(),
        (op.flags & kNullCu) != 0 ? nullptr : batch.cu.data(),
        (op.flags & kNullK) != 0 ? nullptr : k, (op.flags & kNullV) != 0 ? nullptr : v);
    if ((op.flags & kScribble) != 0) {
      for (const Scribbled& s : state_.scribbled) call_.fill(s.data, 0xff, s.bytes);
    }
    return status;
  }

  // Kept alive until the case ends, so that a cache that kept the pointer reads the overwritten
  // contents.
  const void* copied(const void* data, std::int64_t elements) {
    assay_ctx* ctx = call_.ctx();
    const auto bytes = static_cast<std::size_t>(elements * p_.element_bytes);
    void* copy = ctx->alloc(ctx, bytes, 64, ctx->device >= 0 ? 1 : 0);
    if (copy == nullptr) return data;
    call_.copy(copy, data, bytes);
    state_.scribbled.push_back({copy, bytes});
    return copy;
  }

  std::int32_t attend(const Op& op, kvc* cache) {
    const Batch batch = batch_of(op);
    const auto layer = static_cast<std::int32_t>(op.layer), n = count_of(op);
    const std::int32_t* slots = (op.flags & kNullSlots) != 0 ? nullptr : batch.slots.data();
    const std::int64_t* cu = (op.flags & kNullCu) != 0 ? nullptr : batch.cu.data();
    const void* q =
        (op.flags & kNullK) != 0 ? nullptr : element(call_.phase() == 1 ? kLaterQ : kQ, op.q_at);
    void* o = (op.flags & kNullV) != 0 ? nullptr : element(kO, op.o_at);
    float* lse = op.lse_at < 0 ? nullptr : call_.as<float>(kLse) + op.lse_at;
    if (op.kind == kAttendTree) {
      auto* tree = fn<decltype(kvc_attend_tree)>("kvc_attend_tree");
      if (tree == nullptr) return lacking();
      return tree(cache, layer, n, slots, cu,
                  (op.flags & kNullParent) != 0 ? nullptr : batch.parent.data(), q, p_.scale, o,
                  lse);
    }
    if (op.kind == kAttendShared) {
      auto* shared = fn<decltype(kvc_attend_shared)>("kvc_attend_shared");
      if (shared == nullptr) return lacking();
      return shared(cache, layer, n, slots, cu, op.shared, q, p_.scale, o, lse);
    }
    return fn<decltype(kvc_attend)>("kvc_attend")(cache, layer, n, slots, cu, q, p_.scale, o, lse);
  }

  Call& call_;
  const Params& p_;
  State& state_;
  Result* results_;
  bool lacking_ = false;
};

std::int32_t run(Call& call) {
  auto* state = static_cast<State*>(call.state());
  const Params& p = call.params_as<Params>();
  if (state == nullptr) {
    call.state() = state = new State;
    state->slots.assign(static_cast<std::size_t>(p.variables), -1);
  }
  const std::int32_t status = Script(call, *state).run();
  if (status == ASSAY_OK && call.phase() + 1 < p.phases) return ASSAY_OK;
  for (kvc* cache : state->cache) {
    if (cache != nullptr) call.fn<decltype(kvc_destroy)>("kvc_destroy")(cache);
  }
  for (const Scribbled& s : state->scribbled) call.ctx()->free(call.ctx(), s.data);
  delete state;
  call.state() = nullptr;
  return status;
}

}  // namespace
}  // namespace assay::kv_cache

ASSAY_ADAPTER(kv_cache, kv_cache::run)
