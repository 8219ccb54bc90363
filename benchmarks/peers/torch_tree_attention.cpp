// dflash_verify's attention of draft trees in torch: per item, one masked product over prefix and
// nodes.
#include <limits>
#include <vector>

#include "dflash_verify/worker/call.h"
#include "peers/torch_support.h"

namespace assay::peers {
namespace {

namespace dv = dflash_verify;
namespace buffers = dflash_verify::attention;

// 0 where a node sees a key, otherwise -inf: [n, P + n].
at::Tensor tree_mask(std::int64_t prefix, const std::int32_t* parent, std::int64_t n) {
  at::Tensor mask = at::full({n, prefix + n}, -std::numeric_limits<float>::infinity());
  mask.narrow(1, 0, prefix).zero_();
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j >= 0; j = parent[j]) mask[i][prefix + j] = 0.0f;
  }
  return mask;
}

class TorchTreeAttention final : public Peer {
 public:
  explicit TorchTreeAttention(const PeerCase& c) {
    at::set_num_threads(c.threads);
    dv::Params params;
    std::memcpy(&params, c.plan.params.data(), sizeof params);
    const fa_params& p = params.fa;
    scale_ = p.scale;
    const auto* cu = c.buffers[buffers::kCu].as<std::int64_t>();
    const auto* length = c.buffers[buffers::kP].as<std::int64_t>();
    const auto* rows = c.buffers[buffers::kRows].as<std::int64_t>();
    const auto* parent = c.buffers[buffers::kParent].as<std::int32_t>();
    const at::Tensor q = tensor(c, buffers::kQ), k = tensor(c, buffers::kK),
                     v = tensor(c, buffers::kV);
    o_ = tensor(c, buffers::kO);
    if (c.buffers[buffers::kLse].bytes > 0) lse_ = tensor(c, buffers::kLse);
    for (std::int32_t b = 0; b < params.B; ++b) {
      const std::int64_t n = cu[b + 1] - cu[b];
      // Keys in the cache's layout; a key head serves the query heads of its group as one batch.
      const auto by_head = [&](const at::Tensor& t) {
        return t.narrow(0, rows[b], rows[b + 1] - rows[b]).permute({1, 0, 2});
      };
      items_.push_back({cu[b], n, q.narrow(0, cu[b], n).permute({1, 0, 2}), by_head(k), by_head(v),
                        tree_mask(length[b], parent + cu[b], n).repeat({p.Hq / p.Hkv, 1})});
    }
    group_ = p.Hq / p.Hkv;
  }

  void run() override {
    for (Item& item : items_) {
      const at::Tensor o = at::matmul(at::softmax(scores(item), 2), item.v);
      item.o = o.reshape({item.k.size(0) * group_, item.n, o.size(2)});
    }
  }

  void store() override {
    for (const Item& item : items_) {
      o_.narrow(0, item.first, item.n).copy_(item.o.permute({1, 0, 2}));
      if (!lse_.defined()) continue;
      const at::Tensor lse =
          at::logsumexp(scores(item), 2).reshape({item.k.size(0) * group_, item.n});
      lse_.narrow(0, item.first, item.n).copy_(lse.permute({1, 0}));
    }
  }
  std::vector<int> outputs() const override { return {buffers::kO, buffers::kLse}; }

 private:
  struct Item {
    std::int64_t first, n;
    at::Tensor q, k, v, mask, o = {};
  };

  at::Tensor scores(const Item& item) const {
    const at::Tensor q = item.q.reshape({item.k.size(0), group_ * item.n, item.q.size(2)});
    return at::matmul(q, item.k.transpose(1, 2)).mul_(scale_).add_(item.mask);
  }

  double scale_ = 1;
  std::int64_t group_ = 1;
  at::Tensor o_, lse_;
  std::vector<Item> items_;
};

std::unique_ptr<Peer> make(const PeerCase& c) {
  if (c.plan.entry != dv::kAttention || c.plan.buffers[buffers::kQ].dtype != Dtype::f32)
    return nullptr;
  return std::make_unique<TorchTreeAttention>(c);
}

const Register entry{PeerEntry{"dflash_verify", "torch masked attention", &make}};

}  // namespace
}  // namespace assay::peers
