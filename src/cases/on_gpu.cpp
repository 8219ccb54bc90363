#include "cases/on_gpu.h"

#include "spec/spec.h"

namespace assay::cases {

ChallengeSpec spec_on_gpu(const ChallengeSpec& whole, Sizes sizes) {
  return spec_for(sizes == Sizes::full ? Device::cuda : Device::sim, whole);
}

}  // namespace assay::cases
