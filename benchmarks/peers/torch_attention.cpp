// Attention and its gradients in torch, by full matrices of scores, which is what its scaled dot
// product attention does on a CPU. Masks and the copies of shared key heads are made beforehand.
#include <limits>
#include <utility>

#include "peers/attention_case.h"
#include "peers/torch_support.h"

namespace assay::peers {
namespace {

// A strided array [B, H, N, D] of the case.
at::Tensor array(const PeerCase& c, const char* name, const assay_stride& s, std::int64_t b,
                 std::int64_t h, std::int64_t n, std::int64_t d) {
  void* data = c.buffers[static_cast<std::size_t>(handle_of(c.plan, name))].data;
  return at::from_blob(data, {b, h, n, d}, {s.b, s.h, s.n, 1},
                       at::TensorOptions().dtype(at::kFloat));
}

struct Inputs {
  explicit Inputs(const PeerCase& c) : p(*attention_params(c.plan)), scale(p.scale) {
    at::set_num_threads(c.threads);
    q = array(c, "q", p.sq, p.B, p.Hq, p.Nq, p.D);
    k = array(c, "k", p.sk, p.B, p.Hkv, p.Nk, p.D).repeat_interleave(p.Hq / p.Hkv, 1);
    v = array(c, "v", p.sv, p.B, p.Hkv, p.Nk, p.Dv).repeat_interleave(p.Hq / p.Hkv, 1);
    if (p.causal == 0) return;
    mask = at::full({p.Nq, p.Nk}, -std::numeric_limits<float>::infinity()).triu(p.Nk - p.Nq + 1);
  }
  at::Tensor scores() const {
    at::Tensor s = at::matmul(q, k.transpose(2, 3)).mul_(scale);
    return mask.defined() ? s.add_(mask) : s;
  }
  fa_params p;
  double scale;
  at::Tensor q, k, v, mask;
};

class TorchForward final : public Peer {
 public:
  explicit TorchForward(const PeerCase& c) : in_(c), plan_(c.plan) {
    o_ = array(c, "o", in_.p.so, in_.p.B, in_.p.Hq, in_.p.Nq, in_.p.Dv);
    const int lse = handle_of(c.plan, "lse");
    if (lse >= 0 && c.buffers[static_cast<std::size_t>(lse)].bytes > 0) lse_ = tensor(c, lse);
  }
  void run() override { result_ = at::matmul(at::softmax(in_.scores(), 3), in_.v); }
  void store() override {
    o_.copy_(result_);
    if (lse_.defined()) lse_.copy_(at::logsumexp(in_.scores(), 3));
  }
  std::vector<int> outputs() const override {
    return {handle_of(plan_, "o"), handle_of(plan_, "lse")};
  }

 private:
  Inputs in_;
  const CasePlan& plan_;
  at::Tensor o_, lse_, result_;
};

class TorchBackward final : public Peer {
 public:
  // kept: the probabilities are kept from the forward pass, as in torch's autograd.
  TorchBackward(const PeerCase& c, bool kept) : in_(c), plan_(c.plan) {
    const fa_params& p = in_.p;
    dout_ = array(c, "dout", p.so, p.B, p.Hq, p.Nq, p.Dv);
    const at::Tensor o = array(c, "o", p.so, p.B, p.Hq, p.Nq, p.Dv);
    lse_ = tensor(c, handle_of(c.plan, "lse")).unsqueeze(3);
    o_ = o;
    out_[0] = array(c, "dq", p.sq, p.B, p.Hq, p.Nq, p.D);
    out_[1] = array(c, "dk", p.sk, p.B, p.Hkv, p.Nk, p.D);
    out_[2] = array(c, "dv", p.sv, p.B, p.Hkv, p.Nk, p.Dv);
    if (kept) kept_ = at::softmax(in_.scores(), 3);
  }

  void run() override {
    const at::Tensor p = kept_.defined() ? kept_ : in_.scores().sub_(lse_).exp_();
    const at::Tensor delta = (dout_ * o_).sum(3, true);
    const at::Tensor ds =
        at::matmul(dout_, in_.v.transpose(2, 3)).sub_(delta).mul_(p).mul_(in_.scale);
    result_[0] = at::matmul(ds, in_.k);
    result_[1] = heads(at::matmul(ds.transpose(2, 3), in_.q));
    result_[2] = heads(at::matmul(p.transpose(2, 3), dout_));
  }

  void store() override {
    for (int i = 0; i < 3; ++i) out_[i].copy_(result_[i]);
  }
  std::vector<int> outputs() const override {
    return {handle_of(plan_, "dq"), handle_of(plan_, "dk"), handle_of(plan_, "dv")};
  }

 private:
  // Sums the query heads of each key head.
  at::Tensor heads(const at::Tensor& t) const {
    const fa_params& p = in_.p;
    if (p.Hq == p.Hkv) return t;
    return t.reshape({p.B, p.Hkv, p.Hq / p.Hkv, t.size(2), t.size(3)}).sum(2);
  }

  Inputs in_;
  const CasePlan& plan_;
  at::Tensor dout_, lse_, o_, kept_;
  at::Tensor out_[3], result_[3];
};

bool offered(const PeerCase& c) {
  const auto p = attention_params(c.plan);
  return p && p->dtype == ASSAY_F32 && p->window <= 0;
}

std::unique_ptr<Peer> forward(const PeerCase& c) {
  if (!offered(c)) return nullptr;
  return std::make_unique<TorchForward>(c);
}

template <bool kKept>
std::unique_ptr<Peer> backward(const PeerCase& c) {
  if (!offered(c)) return nullptr;
  return std::make_unique<TorchBackward>(c, kKept);
}

const Register forward_entry{PeerEntry{"flash_attention_fwd", "torch attention", &forward}};
const Register backward_entry{
    PeerEntry{"flash_attention_bwd", "torch gradients of attention", &backward<false>}};
const Register kept_entry{PeerEntry{
    "flash_attention_bwd", "torch gradients of attention, probabilities kept", &backward<true>}};

}  // namespace
}  // namespace assay::peers
