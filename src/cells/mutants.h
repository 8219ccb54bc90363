// Mutants of a right answer against the cases that tell right from wrong.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "build/builder.h"
#include "cells/run_options.h"
#include "mutate/score.h"

namespace assay::cells {

// A right answer that is to be mutated: a shipped model's in C++, or the challenge's par.
struct MutatedAnswer {
  std::string of;
  std::vector<SourceFile> sources;   // what is mutated; those named par/ and common/ are included
  std::vector<SourceFile> included;  // what is not

  std::string scope(const ChallengeSpec& spec) const { return of + "/" + spec.name; }
};

// `of` is "par" or a folder of `submissions`. Throws Error where that has no answer to the
// challenge in C++.
MutatedAnswer answer_to_mutate(const ChallengeSpec&, const std::string& of,
                               const std::filesystem::path& submissions);

// Builds the answer, unchanged, and runs it. Then mutants, on any thread.
class MutantBench {
 public:
  // Throws Error when the answer is not right: its mutants would say nothing.
  MutantBench(const cases::World&, const RunOptions&, const ChallengeSpec&, MutatedAnswer);
  MutantBench(const MutantBench&) = delete;
  MutantBench& operator=(const MutantBench&) = delete;

  // As far as the first case that fails. Throws Error for faults of the harness.
  mutate::Result run(const mutate::Mutation&, const std::vector<mutate::KnownMutant>&) const;

 private:
  BuildResult build(const std::vector<SourceFile>& sources) const;
  void take_times();

  const cases::World& world_;
  const RunOptions& options_;
  ChallengeSpec spec_;  // with the cases that the answer supports alone, and short time limits
  MutatedAnswer answer_;
  BuildResult unchanged_;
  std::string code_;  // the bytes of its library
};

}  // namespace assay::cells
