#include "util/temporary_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "assay/error.h"
#include "util/files.h"
#include "util/remedy.h"

namespace assay {
namespace fs = std::filesystem;

fs::path make_new_folder(const fs::path& parent, const std::string& beginning) {
  std::string name = (parent / (beginning + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) fail_with_errno("make a folder in", parent);
  return name;
}

fs::path make_temporary_folder(const std::string& beginning) {
  std::error_code missing;
  const fs::path parent = fs::temp_directory_path(missing);
  std::string name = (parent / (beginning + "XXXXXX")).string();
  if (missing || ::mkdtemp(name.data()) == nullptr) {
    const int error = missing ? missing.value() : errno;
    throw Error(fmt::format("cannot make a folder in {}: {}{}; TMPDIR names another",
                            missing ? "the temporary folder" : parent.string(),
                            std::strerror(error), remedy(error)));
  }
  return name;
}

}  // namespace assay
