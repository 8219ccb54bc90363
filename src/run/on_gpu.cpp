#include "run/on_gpu.h"

#include "spec/spec.h"

namespace assay::run {

ChallengeSpec spec_on_gpu(const ChallengeSpec& whole, Sizes sizes) {
  return spec_for(sizes == Sizes::full ? Device::cuda : Device::sim, whole);
}

}  // namespace assay::run
