// A challenge as a task of Harbor's (harborframework.com): a folder with instruction.md, task.toml,
// environment/, tests/ and solution/.
#pragma once

#include <filesystem>
#include <string>

#include "task/task.h"

namespace assay::task {

struct HarborOptions {
  Language language = Language::cpp;
  std::string image;              // on which the environment is built, a Debian 12 with apt
  std::filesystem::path package;  // assay's .deb, which the tests install
};

// Makes `folder`. The agent works in /app, where abi.h and a skeleton lie; its environment holds no
// assay, for a package has the challenge's own implementations. The tests bring the package along,
// grade /app with `assay grade` and write a hundredth of the score to /logs/verifier/reward.txt;
// where the harness fails they write no reward and end with status 2. The solution is the
// challenge's par, or for CUDA its naive kernel. Throws Error, and changes nothing, when the folder
// holds anything, or when a file cannot be read.
void export_harbor(const Source&, const HarborOptions&, const std::filesystem::path& folder);

}  // namespace assay::task
