// The examples of a challenge: wrong, slow and cheating implementations that it must catch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/case.h"
#include "build/builder.h"

namespace assay::cells {

// A file of examples/ and the verdict its name states.
struct Example {
  enum class Kind { wrong, cheat, slow };
  Kind kind = Kind::wrong;
  std::string name;  // "wrong_one_pass_variance"
  SourceFile source;
  Language language = Language::cpp;
  std::vector<std::string> targets;  // cases named on the first line
};

// Examples of a challenge in one language (.cpp or .cu), sorted by name. Throws Error when a first
// line is malformed or names an unknown case, or in CUDA one that is not run on the simulator.
std::vector<Example> load_examples(const ChallengeSpec&, Language = Language::cpp);

// What naive and par may include: abi.h, the headers (.h and .cuh) of naive/, par/ and common/ in
// the folder baselines/, by that path, and what all challenges' share as "shared/baselines/NAME.h".
std::vector<SourceFile> baseline_headers(const ChallengeSpec&);

// The challenge's par kernel in CUDA, NAME.cu in the folder kernels/ beside challenges/. It need
// not exist.
std::filesystem::path kernel_path(const ChallengeSpec&);

// What it may include: abi.h, and the headers of kernels/common/ as "common/NAME.h".
std::vector<SourceFile> kernel_headers(const ChallengeSpec&);

// What an example may include: what naive and par of its language may, naive.cpp or naive.cu, and
// the headers (.h, of CUDA .cuh) that lie among the examples.
std::vector<SourceFile> example_headers(const ChallengeSpec&, Language = Language::cpp);

// Whether a case that every submission must pass fails with it. Tests need not know of
// capabilities that their submission may lack.
bool breaks_what_is_required(const ChallengeSpec&, const Example&);

// Whether it names a case that is timed or runs alone.
bool needs_timing(const ChallengeSpec&, const Example&);

// A file of the challenge's folder. Throws Error when it cannot be read.
SourceFile challenge_file(const ChallengeSpec&, const std::string& file);

// naive.cpp, naive.cu or par.cpp, by that name. Throws Error when it cannot be read.
SourceFile baseline_file(const ChallengeSpec&, const std::string& file);
std::filesystem::path baseline_path(const ChallengeSpec&, const std::string& file);

}  // namespace assay::cells
