// An answer that lies anywhere, as check and grade are given it.
#pragma once

#include <string>
#include <vector>

#include "cli/context.h"
#include "spec/spec.h"
#include "submission/submission.h"

namespace CLI {
class App;
}

namespace assay::cli {

struct OutsideOptions {
  std::string path, challenge, device = "auto";
};

// Declares PATH, --challenge and --device; with `real_gpu` that may be cuda.
void add_outside_options(CLI::App&, OutsideOptions&, bool real_gpu = false);

struct OutsideAnswer {
  std::vector<Submission> answers;  // for the device; C++ before CUDA
  ChallengeSpec spec;
  std::string known_by;  // how the challenge is known
};

// Reads it. Throws Error that says what is missing, and names the candidates where the challenge is
// not clear.
OutsideAnswer find_outside_answer(const Context&, const OutsideOptions&);

}  // namespace assay::cli
