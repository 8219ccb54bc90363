// One attack through the same door as any submission.
#pragma once

#include <cstdint>
#include <filesystem>

#include "attack/attack.h"
#include "attack/judgement.h"
#include "build/builder.h"

namespace assay::attack {

struct Door {
  Places places;
  const std::vector<ChallengeSpec>& specs;
  Builder& builder;
  sandbox::Tier tier;
  std::uint64_t seed = 1;
  std::filesystem::path scratch;  // a folder for what is laid out, empty; whoever calls removes it
};

// Whether something of it is on the clock, so that nothing may run beside it.
bool needs_quiet(const Attack&, const std::vector<ChallengeSpec>&);

// Lays it out, builds it, runs its cases, tries the tests that it ships, and where a dimension is
// named does the same with its honest twin, timed cases of both in the same rounds. Nothing is said
// of neighbours and of what is left behind. Throws Error for faults of the harness.
Observation run_attack(const Attack&, const Door&);

// Everything that should not change about an honest cell, whatever ran before it: verdicts, errors,
// details.
std::string run_neighbour(const Attack& honest, const Door&);

}  // namespace assay::attack
