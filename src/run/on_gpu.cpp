#include "run/on_gpu.h"

#include "spec/spec.h"

namespace assay::run {

ChallengeSpec spec_on_gpu(const ChallengeSpec& whole, Sizes sizes) {
  ChallengeSpec spec = spec_for(Device::sim, whole);
  if (sizes == Sizes::simulated) return spec;
  for (CaseSpec& c : spec.cases) {
    if (c.group == CaseGroup::timed) c.params = find_case(whole, c.name)->params;
  }
  return spec;
}

World world_on_gpu(Builder& builder) {
  World world = real_world(builder);
  world.compile = [&builder](BuildRequest request) {
    request.machine_code = request.language == Language::cuda && request.objects.empty();
    return builder.build(request);
  };
  return world;
}

WorkerSettings gpu_settings(const World& world, const RunOptions& options,
                            const ChallengeSpec& spec, const std::filesystem::path& library,
                            const std::string& driver) {
  WorkerSettings settings = simulator_settings(world, options, spec, library);
  settings.device->driver = driver;
  return settings;
}

}  // namespace assay::run
