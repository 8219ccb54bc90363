// What the cases of one cell are run with.
#pragma once

#include <cstdint>

#include "assay/challenge.h"
#include "run/time_account.h"
#include "run/worker.h"
#include "run/world.h"

namespace assay::run {

struct Bench {
  const World& world;
  const Challenge& challenge;
  WorkerSettings settings;  // with the challenge's spec
  std::uint64_t run_seed = 0;
  TimeAccount& account;

  const ChallengeSpec& spec() const { return *settings.spec; }
};

}  // namespace assay::run
