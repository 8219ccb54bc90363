// The fate of mutants, and the score of the cases meant to kill them.
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
  same_code,  // compiles to the same bytes as the answer
  killed,
  listed,    // survived, and the challenge's list says why it may
  survived,  // no case failed: a gap, or a missing list entry
};

const char* to_string(Fate);

struct Result {
  Mutation mutation;
  Fate fate = Fate::survived;
  std::string case_name, detail;       // if killed: the case, and its detail
  Verdict verdict = Verdict::ok;       // that case's verdict
  bool by_measuring = false;           // it is a case of speed or memory: no other failed
  std::optional<KnownMutant> known{};  // its list entry, even if it was killed
};

struct Tally {
  std::size_t does_not_compile = 0, same_code = 0, killed = 0, listed = 0, survived = 0;
  std::size_t by_measuring = 0;  // of the killed, those that only cases of speed or memory kill

  void add(const Result&);
  void add(const Tally&);
  std::size_t total() const { return does_not_compile + same_code + killed + listed + survived; }
  // killed / (killed + survived); nothing if no mutant counts.
  std::optional<double> score() const;

  bool operator==(const Tally&) const = default;
};

// How well the cases of one challenge killed mutants of one correct answer.
struct ChallengeScore {
  std::string challenge;
  std::string of;                      // the answer: a model shipped as correct, or "par"
  std::vector<std::string> judged_by;  // judging_hashes() of the cases that decided
  std::uint64_t seed = 0;
  std::size_t possible = 0;  // all mutants of the answer; the tally's were drawn from them
  Tally tally;

  bool operator==(const ChallengeScore&) const = default;
};

}  // namespace assay::mutate
