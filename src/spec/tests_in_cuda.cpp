#include "spec/tests_in_cuda.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

namespace assay {
namespace fs = std::filesystem;

bool has_tests_in_cuda(const ChallengeSpec& spec) {
  if (spec.directory.empty()) return false;  // read from a text, not from a folder
  std::error_code ec;
  const fs::directory_iterator examples(fs::path(spec.directory) / "examples", ec);
  return std::any_of(begin(examples), end(examples), [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename();
    return name.starts_with("wrong_") && name.ends_with(".cu");
  });
}

}  // namespace assay
