#include "build/tool.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace assay {
namespace fs = std::filesystem;

std::optional<fs::path> find_in_path(const std::string& name, bool (*accepts)(const fs::path&)) {
  const char* variable = std::getenv("PATH");
  const std::string path = variable != nullptr ? variable : "/usr/bin:/bin";
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const fs::path candidate = fs::path(path.substr(begin, end - begin)) / name;
    std::error_code ec;
    const bool usable = ::access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate, ec);
    if (usable && (accepts == nullptr || accepts(candidate))) return candidate;
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace assay
