// Exports a challenge as a task for Harbor (harborframework.com): a folder with instruction.md,
// task.toml, environment/, tests/ and solution/.
#pragma once

#include <filesystem>
#include <string>

#include "task/task.h"

namespace assay::task {

struct HarborOptions {
  Language language = Language::cpp;
  std::string image;              // base of the environment, a Debian 12 with apt
  std::filesystem::path package;  // assay's .deb, which the tests install
};

// Makes `folder`. The agent works in /app, which holds abi.h and a skeleton. Its environment does
// not contain assay, because the package holds the challenge's own implementations. The tests bring
// the package along, grade /app with `assay grade` and write a hundredth of the score to
// /logs/verifier/reward.txt. If the harness fails, they write no reward and exit with 2. The
// solution is the challenge's par, or for CUDA its naive kernel. Throws Error, and changes nothing,
// if the folder is not empty or if a file cannot be read.
void export_harbor(const Source&, const HarborOptions&, const std::filesystem::path& folder);

}  // namespace assay::task
