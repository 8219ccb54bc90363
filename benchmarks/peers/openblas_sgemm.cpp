#include <cblas.h>

#include "peers/peer.h"

namespace assay::peers {
namespace {

void multiply(int n, const float* a, const float* b, float* c, int threads) {
  openblas_set_num_threads(threads);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
}

std::string version_text() {
  // "OpenBLAS 0.3.21 DYNAMIC_ARCH ..."
  const std::string config = openblas_get_config();
  return config.substr(0, config.find(' ', config.find(' ') + 1)) + " (" + openblas_get_corename() +
         ")";
}

const Register version{version_text()};
const Register product{MatrixProduct{"OpenBLAS sgemm", &multiply}};

}  // namespace
}  // namespace assay::peers
