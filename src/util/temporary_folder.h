// New folders below the system's temporary one.
#pragma once

#include <filesystem>
#include <string>

namespace assay {

// Makes a folder that did not exist, named `beginning` and six letters, which this user alone may
// enter. It stays. Throws Error with the remedy where none can be made.
std::filesystem::path make_new_folder(const std::filesystem::path& parent,
                                      const std::string& beginning);
// In TMPDIR, or /tmp.
std::filesystem::path make_temporary_folder(const std::string& beginning);

// Such a folder, removed with all that is in it when this ends.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& beginning)
      : path_(make_temporary_folder(beginning)) {}
  ~TemporaryFolder() {
    std::error_code ignored;  // what cannot be removed costs nothing but its room
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace assay
