// kv_cache in torch: every sequence has its keys and values in contiguous memory of its greatest
// length, per head. Attention takes one product per sequence. Supports only scripts of appends and
// attentions.
#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "kv_cache/worker/call.h"
#include "peers/torch_support.h"

namespace assay::peers {
namespace {

namespace kv = kv_cache;

class TorchKvCache final : public Peer {
 public:
  explicit TorchKvCache(const PeerCase& c) : c_(c) {
    at::set_num_threads(c.threads);
    std::memcpy(&params_, c.plan.params.data(), sizeof params_);
    const kvc_config& f = params_.config[0];
    group_ = f.n_q / f.n_kv;
    measure();
    for (auto& [slot, s] : sequences_) {
      s.k = at::zeros({f.n_kv, s.capacity, f.D});
      s.v = at::zeros({f.n_kv, s.capacity, f.D});
    }
    play(0);
    for (auto& [slot, s] : sequences_) s.start = s.length;
  }

  static bool offered(const PeerCase& c) {
    const auto ops = c.buffers[kv::kOps].span<kv::Op>();
    kv::Params params;
    std::memcpy(&params, c.plan.params.data(), sizeof params);
    const kvc_config& f = params.config[0];
    const bool plain = f.dtype == ASSAY_F32 && f.n_layers == 1 && f.window < 0 && f.quant == 0 &&
                       (f.Dv == 0 || f.Dv == f.D);
    return plain && std::all_of(ops.begin(), ops.end(), [](const kv::Op& op) {
             return op.phase > 1 || op.kind == kv::kNothing || op.kind == kv::kCreate ||
                    op.kind == kv::kNew || op.kind == kv::kAppend || op.kind == kv::kAttend ||
                    op.kind == kv::kDestroy;
           });
  }

  void run() override {
    for (auto& [slot, s] : sequences_) s.length = s.start;
    results_.clear();
    play(1);
  }

  void store() override {
    for (const Result& r : results_) {
      const std::int64_t rows = r.o.size(1);
      at::from_blob(c_.buffers[kv::kO].as<float>() + r.o_at, {rows, r.o.size(0), r.o.size(2)},
                    at::kFloat)
          .copy_(r.o.permute({1, 0, 2}));
    }
  }
  std::vector<int> outputs() const override { return {kv::kO}; }

 private:
  struct Sequence {
    at::Tensor k, v;
    std::int64_t capacity = 0, length = 0, start = 0;
  };
  struct Result {
    std::int64_t o_at;
    at::Tensor o;
  };

  std::span<const kv::Op> ops() const {
    const auto all = c_.buffers[kv::kOps].span<kv::Op>();
    return {all.data(), all.size()};
  }
  const std::int64_t* slots(const kv::Op& op) const {
    return c_.buffers[kv::kPool].as<std::int64_t>() + op.pool;
  }

  void measure() {
    for (const kv::Op& op : ops()) {
      if (op.kind != kv::kAppend) continue;
      const std::int64_t *slot = slots(op), *cu = slot + op.n;
      for (std::int64_t b = 0; b < op.n; ++b) sequences_[slot[b]].capacity += cu[b + 1] - cu[b];
    }
  }

  // Rows [from, to) of a packed array [T, heads, D], as [heads, rows, D].
  at::Tensor rows(int handle, std::int64_t at_, std::int64_t from, std::int64_t to,
                  std::int64_t heads) const {
    const std::int64_t D = params_.config[0].D;
    float* data = c_.buffers[static_cast<std::size_t>(handle)].as<float>() + at_ + from * heads * D;
    return at::from_blob(data, {to - from, heads, D}, at::kFloat).permute({1, 0, 2});
  }

  void play(std::int64_t phase) {
    const std::int32_t n_kv = params_.config[0].n_kv;
    const int later = phase == 0 ? 0 : kv::kLaterK - kv::kK;
    for (const kv::Op& op : ops()) {
      if (op.phase != phase || (op.kind != kv::kAppend && op.kind != kv::kAttend)) continue;
      const std::int64_t *slot = slots(op), *cu = slot + op.n;
      for (std::int64_t b = 0; b < op.n; ++b) {
        Sequence& s = sequences_[slot[b]];
        const std::int64_t n = cu[b + 1] - cu[b];
        if (op.kind == kv::kAppend) {
          s.k.narrow(1, s.length, n).copy_(rows(kv::kK + later, op.k_at, cu[b], cu[b + 1], n_kv));
          s.v.narrow(1, s.length, n).copy_(rows(kv::kV + later, op.v_at, cu[b], cu[b + 1], n_kv));
          s.length += n;
        } else {
          attend(s, op, cu[b], cu[b + 1], kv::kQ + later);
        }
      }
    }
  }

  void attend(const Sequence& s, const kv::Op& op, std::int64_t from, std::int64_t to, int handle) {
    const kvc_config& f = params_.config[0];
    const std::int64_t n = to - from;
    const at::Tensor q = rows(handle, op.q_at, from, to, f.n_q).reshape({f.n_kv, group_ * n, f.D});
    at::Tensor scores =
        at::matmul(q, s.k.narrow(1, 0, s.length).transpose(1, 2)).mul_(params_.scale);
    if (n > 1) scores.add_(mask(n, s.length));
    const at::Tensor o = at::matmul(at::softmax(scores, 2), s.v.narrow(1, 0, s.length));
    results_.push_back({op.o_at + from * f.n_q * f.D, o.reshape({f.n_q, n, f.D})});
  }

  const at::Tensor& mask(std::int64_t n, std::int64_t length) {
    at::Tensor& m = masks_[{n, length}];
    if (!m.defined()) {
      m = at::full({n, length}, -std::numeric_limits<float>::infinity())
              .triu(length - n + 1)
              .repeat({group_, 1});
    }
    return m;
  }

  PeerCase c_;
  kv::Params params_;
  std::int64_t group_ = 1;
  std::map<std::int64_t, Sequence> sequences_;
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> masks_;
  std::vector<Result> results_;
};

std::unique_ptr<Peer> make(const PeerCase& c) {
  if (!TorchKvCache::offered(c)) return nullptr;
  return std::make_unique<TorchKvCache>(c);
}

const Register entry{PeerEntry{"kv_cache", "torch attention, contiguous cache", &make}};

}  // namespace
}  // namespace assay::peers
