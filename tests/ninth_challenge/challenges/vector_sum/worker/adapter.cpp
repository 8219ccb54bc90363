#include "assay/worker.h"
#include "call.h"

namespace assay::vector_sum {
namespace {

std::int32_t run(worker::Call& call) {
  return call.fn<decltype(::vector_sum)>("vector_sum")(call.ctx(), &call.params_as<Params>().p,
                                                       call.as<float>(kX), call.as<float>(kSum));
}

}  // namespace
}  // namespace assay::vector_sum

ASSAY_ADAPTER(vector_sum, vector_sum::run)
