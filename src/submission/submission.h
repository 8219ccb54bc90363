// submissions/<model>/<challenge>/[<attempt>/] -> Submission. A folder may hold an answer in C++
// (submission.cpp), one in CUDA (submission.cu), or both; each is a submission of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "assay/device.h"

namespace assay {

struct SourceFile {
  std::string name;      // as received, a plain file name
  std::string contents;  // at most 4 MiB
};

enum class Language : std::uint8_t { cpp, cuda };

const char* main_file(Language);  // "submission.cpp"

struct Submission {
  std::string model, challenge, attempt;  // attempt "" when the folder is not numbered
  std::filesystem::path directory;
  // The main file first, then the others by name: of CUDA every .cu, .cuh and header, of C++ all but .cu and .cuh.
  // Empty when `rejected` says why.
  std::vector<SourceFile> sources;
  std::string test_source;  // contents of test.cpp, the submission's own tests; "" when absent
  std::string rejected;     // a file that may not be there, by name and reason; the build's verdict
  Language language = Language::cpp;

  // What the cell is measured on.
  Device device() const { return language == Language::cpp ? Device::cpu : Device::sim; }
};

// Reads every file of the folder: only plain regular files (opened without following links), names
// of letters, digits, '_', '-' and '.', not starting with '-', '.' or '@', endings .cpp .cc .cu .cuh .h
// .hpp .inl .md .txt (the last two are ignored). Anything else sets `rejected`, never throws. At least
// one submission, C++ before CUDA.
std::vector<Submission> read_submissions(const std::filesystem::path& directory,
                                         const std::string& model, const std::string& challenge,
                                         const std::string& attempt);

// Every submission below `root` for the given challenges, sorted by (model, challenge, attempt, language).
// A model folder without any known challenge is reported in `warnings`, as is a challenge folder
// whose name is unknown ("did you mean ..."), and a model whose name files of results cannot hold.
std::vector<Submission> find_submissions(const std::filesystem::path& root,
                                         const std::vector<std::string>& challenges,
                                         std::vector<std::string>& warnings);

// SHA-256 over names and contents of the sources.
std::string source_hash(const Submission&);

}  // namespace assay
