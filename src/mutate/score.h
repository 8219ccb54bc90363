// What became of mutants, and the score of the cases that were to kill them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "mutate/known.h"

namespace assay::mutate {

enum class Fate : std::uint8_t {
  does_not_compile,
  same_code,  // the compiler makes of it what it makes of the answer, byte for byte
  killed,
  listed,    // it survived, and the challenge's list says why it may
  survived,  // no case failed: a hole, or an entry that the list lacks
};

const char* to_string(Fate);

struct Result {
  Mutation mutation;
  Fate fate = Fate::survived;
  std::string case_name, detail;       // killed: by which case, and what it saw
  Verdict verdict = Verdict::ok;       // of that case
  std::optional<KnownMutant> known{};  // the entry of the list, also of one that was killed
};

struct Tally {
  std::size_t does_not_compile = 0, same_code = 0, killed = 0, listed = 0, survived = 0;

  void add(const Result&);
  void add(const Tally&);
  std::size_t total() const { return does_not_compile + same_code + killed + listed + survived; }
  // killed / (killed + survived); nothing where no mutant counts.
  std::optional<double> score() const;

  bool operator==(const Tally&) const = default;
};

// How good the cases of one challenge were at killing mutants of one right answer.
struct ChallengeScore {
  std::string challenge;
  std::string of;         // the answer: a model that is shipped as right, or "par"
  std::string spec_hash;  // ChallengeSpec::hash of the cases
  std::uint64_t seed = 0;
  std::size_t possible = 0;  // mutants that the answer has, of which the tally's were drawn
  Tally tally;

  bool operator==(const ChallengeScore&) const = default;
};

}  // namespace assay::mutate
