// Runs mutants of a correct answer on the cases that judge correctness, and then on those of speed
// and memory, whose outputs count for correctness too.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "build/builder.h"
#include "cells/run_options.h"
#include "mutate/score.h"

namespace assay::cells {

// A correct answer to mutate: a shipped model's C++ answer, or the challenge's par.
struct MutatedAnswer {
  std::string of;
  std::vector<SourceFile> sources;   // the files to mutate; those in par/ and common/ are included
  std::vector<SourceFile> included;  // headers that are not mutated

  std::string scope(const ChallengeSpec& spec) const { return of + "/" + spec.name; }
};

// `of` is "par" or a folder of `submissions`. Throws Error if that folder has no C++ answer to the
// challenge.
MutatedAnswer answer_to_mutate(const ChallengeSpec&, const std::string& of,
                               const std::filesystem::path& submissions);

// Builds and runs the unchanged answer first, then mutants, on any thread.
class MutantBench {
 public:
  // Throws Error if the answer is not correct: its mutants would prove nothing.
  MutantBench(const cases::World&, const RunOptions&, const ChallengeSpec&, MutatedAnswer);
  MutantBench(const MutantBench&) = delete;
  MutantBench& operator=(const MutantBench&) = delete;

  // Stops at the first case that fails. Throws Error for faults of the harness.
  mutate::Result run(const mutate::Mutation&, const std::vector<mutate::KnownMutant>&) const;

 private:
  BuildResult build(const std::vector<SourceFile>& sources) const;
  void take_times();

  const cases::World& world_;
  const RunOptions& options_;
  ChallengeSpec spec_;  // the cases that the answer supports; those that judge correctness come
                        // first, with short time limits
  MutatedAnswer answer_;
  BuildResult unchanged_;
  std::string code_;  // the bytes of the unchanged library
};

}  // namespace assay::cells
