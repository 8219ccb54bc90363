// New folders in the system's temporary folder.
#pragma once

#include <filesystem>
#include <string>

namespace assay {

// Makes a new folder, named `beginning` and six letters, that only this user may enter. It is not
// removed. Throws Error with the remedy if none can be made.
std::filesystem::path make_new_folder(const std::filesystem::path& parent,
                                      const std::string& beginning);
// In TMPDIR, or /tmp.
std::filesystem::path make_temporary_folder(const std::string& beginning);

// Such a folder, removed with its contents on destruction.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& beginning)
      : path_(make_temporary_folder(beginning)) {}
  ~TemporaryFolder() {
    std::error_code ignored;  // what cannot be removed only takes up space
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace assay
