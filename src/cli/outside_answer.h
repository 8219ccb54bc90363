// An answer at any path, as given to check and grade.
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

// Declares PATH, --challenge and --device; with `real_gpu` the device may be cuda.
void add_outside_options(CLI::App&, OutsideOptions&, bool real_gpu = false);

struct OutsideAnswer {
  std::vector<Submission> answers;  // for the device; C++ before CUDA
  ChallengeSpec spec;
  std::string known_by;  // how the challenge was recognised
};

// Reads the answer. Throws Error naming what is missing, or the candidates if the challenge is
// ambiguous.
OutsideAnswer find_outside_answer(const Context&, const OutsideOptions&);

}  // namespace assay::cli
