#include "cli/published_files.h"

#include "util/files.h"

namespace assay::cli {
namespace fs = std::filesystem;

fs::path published_folder(const fs::path& results) { return results / "published"; }

std::map<std::string, compare::Published> read_published(const fs::path& results) {
  std::map<std::string, compare::Published> all;
  const fs::path folder = published_folder(results);
  if (!fs::is_directory(folder)) return all;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".json") continue;
    all.emplace(entry.path().stem().string(),
                compare::parse_published(read_file(entry.path()), entry.path().string()));
  }
  return all;
}

}  // namespace assay::cli
