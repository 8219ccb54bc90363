// Runs one attack through the same path as any submission.
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
  std::filesystem::path scratch;  // an empty folder for the files; the caller removes it
};

// Whether any of it is timed, so that nothing may run beside it.
bool needs_quiet(const Attack&, const std::vector<ChallengeSpec>&);

// Writes its files, builds it, runs its cases and, for the dimension tests, its own tests. If a
// dimension is named, does the same with its honest twin; timed cases of both run in the same
// rounds. Does not check neighbours or leftovers. Throws Error for faults of the harness.
Observation run_attack(const Attack&, const Door&);

// Everything that should not change about an honest cell, whatever ran before it: verdicts, errors,
// details.
std::string run_neighbour(const Attack& honest, const Door&);

}  // namespace assay::attack
