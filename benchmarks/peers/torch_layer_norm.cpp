// layer_norm_backward by torch's own kernel, with the statistics of torch's own forward pass.
#include <ATen/Version.h>
#include <torch/version.h>

#include <tuple>

#include "layer_norm_backward/harness/trusted.h"
#include "peers/torch_support.h"

namespace assay::peers {
namespace {

namespace ln = layer_norm_backward;

class TorchLayerNorm final : public Peer {
 public:
  explicit TorchLayerNorm(const PeerCase& c)
      : case_(c),
        x_(tensor(c, ln::kX)),
        dy_(tensor(c, ln::kDy)),
        gamma_(tensor(c, ln::kGamma)),
        beta_(tensor(c, ln::kBeta)) {
    at::set_num_threads(c.threads);
    const auto forward =
        at::native_layer_norm(x_, {x_.size(1)}, gamma_, beta_, ln::shape_of(c.spec).eps);
    mean_ = std::get<1>(forward);
    rstd_ = std::get<2>(forward);
  }

  void run() override {
    gradients_ = {};
    gradients_ = at::native_layer_norm_backward(dy_, x_, {x_.size(1)}, mean_, rstd_, gamma_, beta_,
                                                {true, true, true});
  }

  void store() override {
    copy_out(std::get<0>(gradients_), case_.buffers[ln::kDx]);
    copy_out(std::get<1>(gradients_), case_.buffers[ln::kDgamma]);
    copy_out(std::get<2>(gradients_), case_.buffers[ln::kDbeta]);
  }
  std::vector<int> outputs() const override { return {ln::kDx, ln::kDgamma, ln::kDbeta}; }

 private:
  PeerCase case_;
  at::Tensor x_, dy_, gamma_, beta_, mean_, rstd_;
  std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients_;
};

std::unique_ptr<Peer> make(const PeerCase& c) {
  const ln::Shape s = ln::shape_of(c.spec);
  if (s.dtype != ASSAY_F32 || s.mode != ln::kPlain) return nullptr;
  return std::make_unique<TorchLayerNorm>(c);
}

const Register version{std::string("torch " TORCH_VERSION)};
const Register entry{PeerEntry{"layer_norm_backward", "torch native_layer_norm_backward", &make}};

}  // namespace
}  // namespace assay::peers
