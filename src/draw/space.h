// Draws from a challenge's space of legal inputs: a JSON object with a value for each axis. A drawn
// case depends only on that and the seed of its inputs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/challenge.h"

namespace assay::draw {

// The axis handled by the harness: which allocation of the case is refused, 0 for none.
inline constexpr const char* kFailingAllocation = "failing_allocation";

// Each axis takes one of its choices with equal probability; with `rare`, occasionally one that
// only fuzzing uses. The draw does not reveal the seed.
nlohmann::json draw(const RandomSpace&, std::uint64_t seed, bool rare);

// Simpler values on this axis, simplest first: those of earlier choices and, for a number from a
// range, values between the range's lower end and the number.
std::vector<nlohmann::json> simpler(const Axis&, const nlohmann::json& value);

// Throws Error, suggesting the nearest name, if the draw names an axis that the space lacks.
void check_names(const RandomSpace&, const nlohmann::json& draw);

// The case that a draw makes from a placeholder; nothing if the challenge rejects the draw.
std::optional<CaseSpec> case_of(const Challenge&, const RandomSpace&, const CaseSpec& placeholder,
                                const nlohmann::json& draw);

// A draw and its case.
struct Drawn {
  nlohmann::json draw;
  CaseSpec spec;
};

// The first valid draw from the seed. Throws Error after a hundred invalid draws.
Drawn draw_case(const Challenge&, const RandomSpace&, const CaseSpec& placeholder,
                std::uint64_t seed, bool rare);

// A spec's placeholder, as drawn by the run with that seed.
Drawn draw_case(const Challenge&, const ChallengeSpec&, const CaseSpec& placeholder,
                std::uint64_t run_seed);

}  // namespace assay::draw
