// submissions/<model>/<challenge>/[<attempt>/] -> Submission.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "assay/case.h"

namespace assay {

struct SourceFile {
  std::string name;      // as received, a plain file name
  std::string contents;  // at most 4 MiB
};

struct Submission {
  std::string model, challenge, attempt;  // attempt "" when the folder is not numbered
  std::filesystem::path directory;
  // submission.cpp first, then the other files by name. Empty when `rejected` says why.
  std::vector<SourceFile> sources;
  std::string test_source;   // contents of test.cpp, the submission's own tests; "" when absent
  std::string rejected;      // a file that may not be there, by name and reason; the build's verdict
};

// Reads every file of the folder: only plain regular files (opened without following links), names
// of letters, digits, '_', '-' and '.', not starting with '-', '.' or '@', endings .cpp .cc .h .hpp
// .inl .md .txt (the last two are ignored). Anything else sets `rejected`, never throws.
Submission read_submission(const std::filesystem::path& directory, std::string model,
                           std::string challenge, std::string attempt);

// Every submission below `root` for the given challenges, sorted by (model, challenge, attempt).
// A model folder without any known challenge is reported in `warnings`, as is a challenge folder
// whose name is unknown ("did you mean ...").
std::vector<Submission> find_submissions(const std::filesystem::path& root,
                                         const std::vector<std::string>& challenges,
                                         std::vector<std::string>& warnings);

// SHA-256 over names and contents of the sources.
std::string source_hash(const Submission&);

}  // namespace assay
