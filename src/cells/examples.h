// The examples of a challenge: wrong, slow and cheating implementations that it must catch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/case.h"
#include "build/builder.h"

namespace assay::cells {

// A file in examples/, and the kind its name states.
struct Example {
  enum class Kind { wrong, cheat, slow };
  Kind kind = Kind::wrong;
  std::string name;  // "wrong_one_pass_variance"
  SourceFile source;
  Language language = Language::cpp;
  std::vector<std::string> targets;  // cases named on the first line
};

// Examples of a challenge in one language (.cpp or .cu), sorted by name. Throws Error if a first
// line is malformed or names an unknown case, or in CUDA a case that does not run on the simulator.
std::vector<Example> load_examples(const ChallengeSpec&, Language = Language::cpp);

// What naive and par may include: abi.h; the headers (.h and .cuh) in baselines/naive/, par/ and
// common/, by their path below baselines/; and the headers shared by all challenges, as
// "shared/baselines/NAME.h".
std::vector<SourceFile> baseline_headers(const ChallengeSpec&);

// The challenge's par kernel in CUDA, NAME.cu in the folder kernels/ beside challenges/. It may not
// exist.
std::filesystem::path kernel_path(const ChallengeSpec&);

// What the par kernel may include: abi.h, and the headers in kernels/common/ as "common/NAME.h".
std::vector<SourceFile> kernel_headers(const ChallengeSpec&);

// What an example may include: everything naive and par may, naive.cpp or naive.cu, and the headers
// in examples/ (.h; .cuh for CUDA).
std::vector<SourceFile> example_headers(const ChallengeSpec&, Language = Language::cpp);

// Whether the example fails a case that every submission must pass. Tests need not cover
// capabilities that a submission may lack.
bool breaks_what_is_required(const ChallengeSpec&, const Example&);

// Whether the example names a case that is timed or runs alone.
bool needs_timing(const ChallengeSpec&, const Example&);

// A file in the challenge's folder. Throws Error if it cannot be read.
SourceFile challenge_file(const ChallengeSpec&, const std::string& file);

// naive.cpp, naive.cu or par.cpp, by name. Throws Error if it cannot be read.
SourceFile baseline_file(const ChallengeSpec&, const std::string& file);
std::filesystem::path baseline_path(const ChallengeSpec&, const std::string& file);

}  // namespace assay::cells
