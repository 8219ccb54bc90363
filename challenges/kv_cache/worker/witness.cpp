#include "assay/witness.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "implementation.h"
#include "worker/call.h"

ASSAY_WITNESS()

namespace assay::kv_cache {
namespace {

using witness::Journal;
using witness::product;

template <class T>
void append(std::vector<unsigned char>& packet, const T* data, std::size_t count) {
  if (count == 0) return;
  const std::size_t at = packet.size();
  packet.resize(at + count * sizeof(T));
  std::memcpy(packet.data() + at, data, count * sizeof(T));
}

// Everything done with one cache since its creation. It ends at the first call that cannot be read,
// since later ones would mean something else.
class Session {
 public:
  explicit Session(const kvc_config& config) : config_(config), journal_(0) {
    Params params{};
    params.config[0] = config;
    journal_.params(params);
  }

  void op(const RecordedOp& op) { this->op(op, nullptr, nullptr, nullptr); }
  // True if it can be read; then the rows follow.
  bool op(const RecordedOp& op, const std::int32_t* slots, const std::int64_t* cu,
          const std::int32_t* parent) {
    if (ended_) return false;
    std::vector<unsigned char> packet;
    append(packet, &op, 1);
    if (is_batch(op.kind)) {
      ended_ = !readable(op, slots, cu);
      if (ended_) return false;
      append(packet, slots, static_cast<std::size_t>(op.n));
      append(packet, cu, static_cast<std::size_t>(op.n) + 1);
      if (parent != nullptr) append(packet, parent, static_cast<std::size_t>(cu[op.n]));
    }
    journal_.add(kRecordedOp, packet.data(), static_cast<std::int64_t>(packet.size()));
    return true;
  }
  void rows(Handle handle, const void* data, std::int64_t rows, std::int32_t heads,
            std::int32_t width) {
    const std::int64_t bytes = config_.dtype == ASSAY_F32 ? 4 : 2;
    if (rows > 0) journal_.add(handle, data, product(product(rows, heads), product(width, bytes)));
  }
  int result(int status, std::int32_t slot = -1) {
    const RecordedResult got{status, slot};
    if (!ended_) journal_.add(kRecordedResult, &got, sizeof got);
    return status;
  }

  const kvc_config& config() const { return config_; }

 private:
  static bool is_batch(std::int64_t kind) { return kind == kAppend || is_attention(kind); }
  static bool readable(const RecordedOp& op, const std::int32_t* slots, const std::int64_t* cu) {
    constexpr std::int64_t kMost = 1 << 20;
    if (op.n < 0 || op.n > kMost || cu == nullptr || cu[0] != 0) return false;
    if (op.n > 0 && slots == nullptr) return false;
    for (std::int64_t b = 0; b < op.n; ++b) {
      if (cu[b + 1] < cu[b]) return false;
    }
    const bool nothing = (op.flags & (kNullK | kNullV | kNullParent)) != 0;
    return cu[op.n] <= kMost && (cu[op.n] == 0 || !nothing);
  }

  const kvc_config config_;
  Journal journal_;
  bool ended_ = false;
};

// The sessions of the existing caches.
class Sessions {
 public:
  using Shared = std::shared_ptr<Session>;

  Shared of(const kvc* cache) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(cache);
    return found == all_.end() ? nullptr : found->second;
  }
  void begin(const kvc* cache, Shared session) {
    const std::lock_guard lock(mutex_);
    all_[cache] = std::move(session);
  }
  void end(const kvc* cache) {
    const std::lock_guard lock(mutex_);
    all_.erase(cache);
  }
  static Sessions& of_process() {
    static Sessions sessions;
    return sessions;
  }

 private:
  std::mutex mutex_;
  std::map<const kvc*, Shared> all_;
};

Sessions::Shared session_of(const kvc* cache) { return Sessions::of_process().of(cache); }

// call() makes the call.
template <class Call>
int watch(kvc* cache, const RecordedOp& op, Call call) {
  const auto session = session_of(cache);
  if (!session) return call();
  session->op(op);
  return session->result(call());
}
template <class Call>
int watch_slot(kvc* cache, const RecordedOp& op, const std::int32_t* slot, Call call) {
  const auto session = session_of(cache);
  if (!session) return call();
  session->op(op);
  const int status = call();
  return session->result(status, slot == nullptr ? -1 : *slot);
}

RecordedOp op_of(Kind kind, std::int32_t slot = 0) {
  RecordedOp op;
  op.kind = kind;
  op.slot = slot;
  return op;
}

std::int64_t flag(const void* data, std::int64_t flag) { return data == nullptr ? flag : 0; }

struct Batch {
  std::int32_t layer, n;
  const std::int32_t* slots;
  const std::int64_t* cu;
};

template <class Call>
int watch_append(kvc* cache, const Batch& batch, const void* k, const void* v, Call call) {
  const auto session = session_of(cache);
  if (!session) return call();
  RecordedOp op = op_of(kAppend);
  op.layer = batch.layer;
  op.n = batch.n;
  op.flags = flag(k, kNullK) | flag(v, kNullV);
  if (session->op(op, batch.slots, batch.cu, nullptr)) {
    const kvc_config& c = session->config();
    session->rows(kK, k, batch.cu[batch.n], c.n_kv, c.D);
    session->rows(kV, v, batch.cu[batch.n], c.n_kv, c.Dv > 0 ? c.Dv : c.D);
  }
  return session->result(call());
}

template <class Call>
int watch_attention(kvc* cache, RecordedOp op, const Batch& batch, const std::int32_t* parent,
                    const void* q, float scale, const void* o, const void* lse, Call call) {
  const auto session = session_of(cache);
  if (!session) return call();
  op.layer = batch.layer;
  op.n = batch.n;
  op.scale = scale;
  op.flags = flag(q, kNullK) | flag(o, kNullV) | flag(lse, kNullLse);
  if (op.kind == kAttendTree) op.flags |= flag(parent, kNullParent);
  if (session->op(op, batch.slots, batch.cu, parent)) {
    const kvc_config& c = session->config();
    session->rows(kQ, q, batch.cu[batch.n], c.n_q, c.D);
  }
  return session->result(call());
}

}  // namespace
}  // namespace assay::kv_cache

using namespace assay::kv_cache;

extern "C" int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (config == nullptr || out == nullptr || config->size != sizeof(kvc_config)) {
    assay::witness::Record(0).strange();
    return ASSAY_IMPLEMENTATION(kvc_create)(ctx, config, out);
  }
  const auto session = std::make_shared<Session>(*config);
  session->op(op_of(kCreate));
  const int status = ASSAY_IMPLEMENTATION(kvc_create)(ctx, config, out);
  if (status == ASSAY_OK && *out != nullptr) Sessions::of_process().begin(*out, session);
  return session->result(status);
}

extern "C" void kvc_destroy(kvc* cache) {
  const auto session = session_of(cache);
  if (session) session->op(op_of(kDestroy));
  Sessions::of_process().end(cache);
  ASSAY_IMPLEMENTATION(kvc_destroy)(cache);
  if (session) session->result(ASSAY_OK);
}

extern "C" int kvc_seq_new(kvc* cache, int32_t* slot) {
  RecordedOp op = op_of(kNew);
  op.flags = flag(slot, kNullV);
  return watch_slot(cache, op, slot,
                    [&] { return ASSAY_IMPLEMENTATION(kvc_seq_new)(cache, slot); });
}

extern "C" int kvc_seq_free(kvc* cache, int32_t slot) {
  return watch(cache, op_of(kFree, slot),
               [&] { return ASSAY_IMPLEMENTATION(kvc_seq_free)(cache, slot); });
}

extern "C" int kvc_truncate(kvc* cache, int32_t slot, int64_t new_len) {
  RecordedOp op = op_of(kTruncate, slot);
  op.length = new_len;
  return watch(cache, op, [&] { return ASSAY_IMPLEMENTATION(kvc_truncate)(cache, slot, new_len); });
}

extern "C" int kvc_fork(kvc* cache, int32_t src, int32_t* dst) {
  RecordedOp op = op_of(kFork, src);
  op.flags = flag(dst, kNullV);
  return watch_slot(cache, op, dst,
                    [&] { return ASSAY_IMPLEMENTATION(kvc_fork)(cache, src, dst); });
}

extern "C" int kvc_append(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* k, const void* v) {
  return watch_append(cache, {layer, n, slots, cu}, k, v, [&] {
    return ASSAY_IMPLEMENTATION(kvc_append)(cache, layer, n, slots, cu, k, v);
  });
}

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  return watch_attention(
      cache, op_of(kAttend), {layer, n, slots, cu}, nullptr, q, scale, o, lse, [&] {
        return ASSAY_IMPLEMENTATION(kvc_attend)(cache, layer, n, slots, cu, q, scale, o, lse);
      });
}

extern "C" int kvc_attend_tree(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                               const int64_t* cu, const int32_t* parent, const void* q, float scale,
                               void* o, float* lse) {
  return watch_attention(cache, op_of(kAttendTree), {layer, n, slots, cu}, parent, q, scale, o, lse,
                         [&] {
                           return ASSAY_IMPLEMENTATION(kvc_attend_tree)(cache, layer, n, slots, cu,
                                                                        parent, q, scale, o, lse);
                         });
}

extern "C" int kvc_attend_shared(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                                 const int64_t* cu, int64_t shared, const void* q, float scale,
                                 void* o, float* lse) {
  RecordedOp op = op_of(kAttendShared);
  op.shared = shared;
  return watch_attention(cache, op, {layer, n, slots, cu}, nullptr, q, scale, o, lse, [&] {
    return ASSAY_IMPLEMENTATION(kvc_attend_shared)(cache, layer, n, slots, cu, shared, q, scale, o,
                                                   lse);
  });
}

extern "C" int64_t kvc_len(kvc* cache, int32_t layer, int32_t slot) {
  const auto session = session_of(cache);
  if (session) {
    RecordedOp op = op_of(kLen, slot);
    op.layer = layer;
    session->op(op);
  }
  const std::int64_t length = ASSAY_IMPLEMENTATION(kvc_len)(cache, layer, slot);
  if (session) session->result(ASSAY_OK);
  return length;
}

extern "C" int kvc_bytes(kvc* cache, int64_t* live, int64_t* reserved) {
  return watch(cache, op_of(kBytes),
               [&] { return ASSAY_IMPLEMENTATION(kvc_bytes)(cache, live, reserved); });
}

extern "C" int kvc_read(kvc* cache, int32_t layer, int32_t slot, int64_t t0, int64_t t1, void* k,
                        void* v) {
  RecordedOp op = op_of(kRead, slot);
  op.from = t0;
  op.until = t1;
  op.layer = layer;
  op.flags = flag(k, kNullK) | flag(v, kNullV);
  return watch(cache, op,
               [&] { return ASSAY_IMPLEMENTATION(kvc_read)(cache, layer, slot, t0, t1, k, v); });
}

extern "C" int kvc_defragment(kvc* cache) {
  return watch(cache, op_of(kDefragment),
               [&] { return ASSAY_IMPLEMENTATION(kvc_defragment)(cache); });
}
