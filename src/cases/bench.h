// Everything needed to run the cases of one cell.
#pragma once

#include <cstdint>

#include "assay/challenge.h"
#include "cases/time_account.h"
#include "cases/world.h"
#include "processes/worker.h"

namespace assay::cases {

struct Bench {
  const World& world;
  const Challenge& challenge;
  processes::WorkerSettings settings;  // with the challenge's spec
  std::uint64_t run_seed = 0;
  TimeAccount& account;

  const ChallengeSpec& spec() const { return *settings.spec; }
};

}  // namespace assay::cases
