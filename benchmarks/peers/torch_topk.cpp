// fused_softmax_topk in torch: either the probabilities of the whole row and then the largest ones,
// or the largest logits and the row's logsumexp, which avoids writing the probabilities.
#include <tuple>

#include "fused_softmax_topk/harness/trusted.h"
#include "peers/torch_support.h"

namespace assay::peers {
namespace {

namespace stk = fused_softmax_topk;

class TorchTopK final : public Peer {
 public:
  TorchTopK(const PeerCase& c, bool whole_row)
      : case_(c), shape_(stk::shape_of(c.spec)), whole_row_(whole_row) {
    at::set_num_threads(c.threads);
    const auto* data = c.buffers[stk::kLogits].as<float>();
    logits_ = at::from_blob(const_cast<float*>(data), {shape_.rows, shape_.V}, {shape_.ld, 1},
                            at::TensorOptions().dtype(at::kFloat));
  }

  void run() override {
    const at::Tensor z = shape_.temperature == 1 ? logits_ : logits_ / shape_.temperature;
    lse_ = at::logsumexp(z, 1);
    if (whole_row_) {
      std::tie(prob_, idx_) = at::topk(at::softmax(z, 1), shape_.K);
      return;
    }
    std::tie(prob_, idx_) = at::topk(z, shape_.K);
    prob_ = (prob_ - lse_.unsqueeze(1)).exp_();
  }

  void store() override {
    copy_out(idx_.to(at::kInt), case_.buffers[stk::kIdx]);
    copy_out(prob_, case_.buffers[stk::kProb]);
    copy_out(lse_, case_.buffers[stk::kLse]);
  }
  std::vector<int> outputs() const override { return {stk::kIdx, stk::kProb, stk::kLse}; }

 private:
  PeerCase case_;
  stk::Shape shape_;
  bool whole_row_;
  at::Tensor logits_, idx_, prob_, lse_;
};

template <bool kWholeRow>
std::unique_ptr<Peer> make(const PeerCase& c) {
  const stk::Shape s = stk::shape_of(c.spec);
  if (s.dtype != ASSAY_F32 || s.entry != stk::kTopK || s.K > s.V) return nullptr;
  return std::make_unique<TorchTopK>(c, kWholeRow);
}

const Register whole{
    PeerEntry{"fused_softmax_topk", "torch softmax, topk, logsumexp", &make<true>}};
const Register part{PeerEntry{"fused_softmax_topk", "torch topk, logsumexp", &make<false>}};

}  // namespace
}  // namespace assay::peers
