// Reads submissions/<model>/<challenge>/[<attempt>/]. A folder may hold an answer in C++
// (submission.cpp), one in CUDA (submission.cu), or both; each is a separate submission.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "assay/device.h"
#include "assay/entrant.h"
#include "assay/results.h"

namespace assay {

struct SourceFile {
  std::string name;      // as received, a plain file name
  std::string contents;  // at most 4 MiB
};

enum class Language : std::uint8_t { cpp, cuda };

const char* main_file(Language);              // "submission.cpp"
const char* tests_file(Language);             // "test.cpp"
bool is_tests_file(const std::string& name);  // of either language

// The function that the tests define.
inline constexpr const char* kSelfTest = "assay_self_test";

inline constexpr std::size_t kLargestSource = 4u << 20, kMostSources = 64;

// Whether a file of this name is part of an answer: .cpp .cc .cu .cuh .h .hpp .inl, except abi.h,
// which belongs to the harness.
bool is_source_name(const std::string& name);
// Why a file of an answer may not have this name, or "".
std::string objection_to_name(const std::string& name);
// Why results could not hold a model of this name, or "". The name is that of a folder.
std::string objection_to_model(const std::string& name);

struct Submission {
  std::string model, challenge, attempt;  // attempt: "" if the folder is not numbered
  std::filesystem::path directory;
  // The main file first, then the others by name: for CUDA every .cu, .cuh and header, for C++
  // everything except .cu and .cuh. Empty if `rejected` says why.
  std::vector<SourceFile> sources;
  // Contents of test.cpp, or for CUDA test.cu: the submission's own tests; "" if absent.
  std::string test_source;
  std::string rejected;   // a forbidden file, by name and reason; decides the build's verdict
  std::string no_answer;  // why there are no sources: the attempt was made and gave no answer
  // Other contents of the folder (logs, notes, scripts, folders), by name: not part of the answer,
  // never opened, and without influence on its grade.
  std::vector<std::string> ignored;
  Language language = Language::cpp;
  AttemptRecord record;      // from attempt.json, in the folder
  std::string record_fault;  // what is wrong with that file; `record` is then empty

  bool on_real_gpu = false;  // CUDA: the user asked for the machine's own GPU

  // What the cell is measured on.
  Device device() const {
    if (language == Language::cpp) return Device::cpu;
    return on_real_gpu ? Device::cuda : Device::sim;
  }
};

// The cell that the submission is measured in.
CellKey key_of(const Submission&);

// Whether a source file may belong to an answer in that language; headers belong to both.
bool is_of(const std::string& name, Language);

// Reads the sources of the folder: files that end in .cpp .cc .cu .cuh .h .hpp or .inl. They must
// be regular files (opened without following links) with names of letters, digits, '_', '-' and
// '.', not starting with '-', '.' or '@'. Any other source sets `rejected`. Everything else is
// ignored. Never throws. Returns at least one submission, C++ before CUDA. Without sources, an
// attempt.json may say that there is no answer.
std::vector<Submission> read_submissions(const std::filesystem::path& directory,
                                         const std::string& model, const std::string& challenge,
                                         const std::string& attempt);

// One source file as the whole answer: a name that ends in .cu makes it submission.cu, one in .cpp
// or .cc submission.cpp; no other file is read. The rules for a folder's files set `rejected` here
// too. Throws Error if the name has none of these endings.
Submission read_source_file(const std::filesystem::path& file, const std::string& challenge);

// Every submission below `root` for the given challenges, sorted by (model, challenge, attempt,
// language). `warnings` reports a model folder without any known challenge, a challenge folder with
// an unknown name ("did you mean ..."), a model whose name result files cannot hold, files that are
// not part of an answer, and faults in a model.json or attempt.json.
std::vector<Submission> find_submissions(const std::filesystem::path& root,
                                         const std::vector<std::string>& challenges,
                                         std::vector<std::string>& warnings);

// What submissions/<model>/model.json says, empty if there is none. If something is wrong with it,
// `fault` says what, by file, line and remedy, and the result is empty: a slip there must not cost
// a run.
ModelInfo read_model_info(const std::filesystem::path& root, const std::string& model,
                          std::string& fault);

// "a, b, c, d and 12 more": file names, made printable.
std::string some_of(const std::vector<std::string>& names);

// SHA-256 over names and contents of the sources.
std::string source_hash(const Submission&);

}  // namespace assay
