// challenges/NAME/mutants.json: mutants that no case needs to kill, each with a reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mutate/mutation.h"

namespace assay::mutate {

// Why a mutant may survive.
enum class Excuse : std::uint8_t {
  same_result,       // as far as known, it does the same on every legal input
  within_accuracy,   // its results differ by less than the error bound
  optional,          // only an optional capability that the answer lacks differs
  outside_contract,  // only behaviour that the task leaves open differs
  cost,              // only time or memory differ
  quality,           // it trains a worse model, which resource cases grade
};

const char* to_string(Excuse);

struct KnownMutant {
  std::string of;             // the answer: "textbook", "par"
  std::string file;           // for example submission.cpp
  std::string line, becomes;  // Mutation::before and after
  std::optional<int> nth;     // which of several such lines; none: all of them
  Excuse excuse = Excuse::same_result;
  std::string reason;

  bool is(const std::string& answer, const Mutation&) const;
};

// Throws Error, with the place, if the text is not such a list or names a mutant twice.
std::vector<KnownMutant> parse_known_mutants(const std::string& text, const std::string& file);

// The list in a challenge's folder; empty if there is none.
std::vector<KnownMutant> load_known_mutants(const std::filesystem::path& challenge);

// The entry for a mutant of that answer, null if there is none.
const KnownMutant* find_known(const std::vector<KnownMutant>&, const std::string& of,
                              const Mutation&);

// Entries for that answer that match none of its mutants, because the answer has changed.
std::vector<const KnownMutant*> unmatched(const std::vector<KnownMutant>&, const std::string& of,
                                          const std::vector<Mutation>& all);

}  // namespace assay::mutate
