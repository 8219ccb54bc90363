// Objects that nvcc compiled for `assay sim`, kept in the build cache for as long as no file that
// they were compiled from changes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "build/cache.h"

namespace assay::cli {

class ObjectCache {
 public:
  explicit ObjectCache(BuildCache& cache) : cache_(cache) {}

  // The object that this command made, unless a file that it read has changed. The command stands
  // for all that the object depends on besides files.
  std::optional<std::filesystem::path> find(const std::string& command);
  // Keeps an object that the command, begun at that time, has made from these files. Keeps nothing
  // if a file cannot be read, was written since, or has a name with a line break.
  void add(const std::string& command, const std::filesystem::path& object,
           const std::vector<std::filesystem::path>& files, std::filesystem::file_time_type begun);

 private:
  BuildCache& cache_;
};

// The files to the right of the colon in a rule for make, as compilers write it with -MD: separated
// by blanks, with "\ " for a blank and "\" at the end of a line that goes on.
std::vector<std::filesystem::path> prerequisites(std::string_view rule);

}  // namespace assay::cli
