// Objects that nvcc compiled for `assay sim`, and the programs that it linked of them, kept in the
// build cache for as long as no file that they were made from changes.
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

  // The program that this command linked of objects with these contents. The command stands for
  // all that the program depends on besides.
  std::optional<std::filesystem::path> find_program(
      const std::string& command, const std::vector<std::filesystem::path>& objects);
  void add_program(const std::string& command, const std::vector<std::filesystem::path>& objects,
                   const std::filesystem::path& program);

 private:
  BuildCache& cache_;
};

// The files to the right of the colon in a rule for make, as compilers write it with -MD: separated
// by blanks, with "\ " for a blank and "\" at the end of a line that goes on.
std::vector<std::filesystem::path> prerequisites(std::string_view rule);

}  // namespace assay::cli
