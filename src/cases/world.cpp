#include "cases/world.h"

#include <fmt/format.h>

#include "assay/error.h"
#include "cases/challenge_registry.h"
#include "measure/caches.h"
#include "measure/machine.h"
#include "processes/worker_process.h"
#include "util/clock.h"

namespace assay::cases {
namespace {

KnownChallenge known_challenge(const std::string& name) {
  const auto rows = challenge_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return {static_cast<std::uint32_t>(i), &rows[i].get()};
  }
  throw Error(fmt::format("challenge {} is not compiled in: configure and build again", name));
}

}  // namespace

World real_world(Builder& builder) {
  World world;
  world.compile = [&builder](const BuildRequest& request) { return builder.build(request); };
  world.make_worker = [](const processes::WorkerSettings& settings, processes::Arena& input,
                         std::size_t output_bytes,
                         processes::Arena* device) -> std::unique_ptr<processes::Worker> {
    return std::make_unique<processes::WorkerProcess>(settings, input, output_bytes, device);
  };
  world.challenge = &known_challenge;
  world.now = &steady_seconds;
  world.flush_caches = &flush_caches;
  world.roofline = &measure_roofline;
  world.target = builder.target();
  world.kept = builder.cache().folder();
  return world;
}

}  // namespace assay::cases
