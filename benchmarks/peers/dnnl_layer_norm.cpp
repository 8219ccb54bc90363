// layer_norm_backward by oneDNN's primitive, with the statistics of oneDNN's own forward pass.
#include <fmt/format.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "layer_norm_backward/harness/trusted.h"
#include "peers/peer.h"

namespace assay::peers {
namespace {

namespace ln = layer_norm_backward;
using dnnl::memory;

class DnnlLayerNorm final : public Peer {
 public:
  explicit DnnlLayerNorm(const PeerCase& c)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const ln::Shape s = ln::shape_of(c.spec);
    const memory::desc matrix({s.rows, s.D}, memory::data_type::f32, memory::format_tag::ab);
    const memory::desc vector({s.D}, memory::data_type::f32, memory::format_tag::a);
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    const dnnl::layer_normalization_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, matrix, s.eps, flags}, engine_);
    const dnnl::layer_normalization_backward::primitive_desc backward(
        {dnnl::prop_kind::backward, matrix, matrix, s.eps, flags}, engine_, forward);
    const auto wrap = [&](const memory::desc& desc, int handle) {
      return memory(desc, engine_, c.buffers[static_cast<std::size_t>(handle)].data);
    };
    const memory x = wrap(matrix, ln::kX), gamma = wrap(vector, ln::kGamma);
    const memory mean(forward.mean_desc(), engine_), variance(forward.variance_desc(), engine_);
    dnnl::layer_normalization_forward(forward).execute(stream_,
                                                       {{DNNL_ARG_SRC, x},
                                                        {DNNL_ARG_SCALE, gamma},
                                                        {DNNL_ARG_SHIFT, wrap(vector, ln::kBeta)},
                                                        {DNNL_ARG_DST, wrap(matrix, ln::kDx)},
                                                        {DNNL_ARG_MEAN, mean},
                                                        {DNNL_ARG_VARIANCE, variance}});
    stream_.wait();
    primitive_ = dnnl::layer_normalization_backward(backward);
    arguments_ = {{DNNL_ARG_SRC, x},
                  {DNNL_ARG_DIFF_DST, wrap(matrix, ln::kDy)},
                  {DNNL_ARG_SCALE, gamma},
                  {DNNL_ARG_SHIFT, wrap(vector, ln::kBeta)},
                  {DNNL_ARG_MEAN, mean},
                  {DNNL_ARG_VARIANCE, variance},
                  {DNNL_ARG_DIFF_SRC, wrap(matrix, ln::kDx)},
                  {DNNL_ARG_DIFF_SCALE, wrap(vector, ln::kDgamma)},
                  {DNNL_ARG_DIFF_SHIFT, wrap(vector, ln::kDbeta)}};
  }

  void run() override {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

  void store() override { run(); }  // writes directly to the case's buffers
  std::vector<int> outputs() const override { return {ln::kDx, ln::kDgamma, ln::kDbeta}; }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

std::unique_ptr<Peer> make(const PeerCase& c) {
  const ln::Shape s = ln::shape_of(c.spec);
  if (s.dtype != ASSAY_F32 || s.mode != ln::kPlain) return nullptr;
  return std::make_unique<DnnlLayerNorm>(c);
}

std::string version_text() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

const Register version{version_text()};
const Register entry{
    PeerEntry{"layer_norm_backward", "oneDNN layer normalization backward", &make}};

}  // namespace
}  // namespace assay::peers
