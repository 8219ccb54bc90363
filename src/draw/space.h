// Draws from a challenge's space of legal inputs: a value for each axis, in a JSON object. That is
// all that a drawn case depends on, beside the seed of its inputs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/challenge.h"

namespace assay::draw {

// The axis that is the harness's affair: which allocation of the case is refused, 0 for none.
inline constexpr const char* kFailingAllocation = "failing_allocation";

// Each axis takes one of its choices, each as likely as the others; with `rare` now and then one of
// those that only fuzzing makes. Says nothing of the seed.
nlohmann::json draw(const RandomSpace&, std::uint64_t seed, bool rare);

// Values that are simpler on this axis, the simplest first: those of earlier choices and, of a
// number from a range, ones between its lower end and the number.
std::vector<nlohmann::json> simpler(const Axis&, const nlohmann::json& value);

// Throws Error with the nearest name where the draw has a value for no axis of the space.
void check_names(const RandomSpace&, const nlohmann::json& draw);

// The case that a draw makes of a placeholder; nothing where the challenge says that it is none.
std::optional<CaseSpec> case_of(const Challenge&, const RandomSpace&, const CaseSpec& placeholder,
                                const nlohmann::json& draw);

// A draw and its case.
struct Drawn {
  nlohmann::json draw;
  CaseSpec spec;
};

// The first draw from the seed that is a case. Throws Error where a hundred are none.
Drawn draw_case(const Challenge&, const RandomSpace&, const CaseSpec& placeholder,
                std::uint64_t seed, bool rare);

// A placeholder of a spec as the run with that seed draws it.
Drawn draw_case(const Challenge&, const ChallengeSpec&, const CaseSpec& placeholder,
                std::uint64_t run_seed);

}  // namespace assay::draw
