// submissions/<model>/<challenge>/[<attempt>/] -> Submission. A folder may hold an answer in C++
// (submission.cpp), one in CUDA (submission.cu), or both; each is a submission of its own.
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

inline constexpr std::size_t kLargestSource = 4u << 20, kMostSources = 64;

// Whether a file of this name is a part of an answer: .cpp .cc .cu .cuh .h .hpp .inl, but for
// abi.h, which is the harness's own.
bool is_source_name(const std::string& name);
// Why a file of an answer may not have this name, "" if it may.
std::string objection_to_name(const std::string& name);
// Why results could not hold a model of this name, "" if they can. It is the name of a folder.
std::string objection_to_model(const std::string& name);

struct Submission {
  std::string model, challenge, attempt;  // attempt "" when the folder is not numbered
  std::filesystem::path directory;
  // The main file first, then the others by name: of CUDA every .cu, .cuh and header, of C++ all
  // but .cu and .cuh. Empty when `rejected` says why.
  std::vector<SourceFile> sources;
  // Contents of test.cpp, or in CUDA of test.cu: the submission's own tests; "" when absent.
  std::string test_source;
  std::string rejected;   // a file that may not be there, by name and reason; the build's verdict
  std::string no_answer;  // why there are no sources: the attempt was made and gave no answer
  // What else lies in the folder (logs, notes, scripts, folders), by name: not part of the answer,
  // never opened, and of no influence on its grade.
  std::vector<std::string> ignored;
  Language language = Language::cpp;
  AttemptRecord record;      // of attempt.json, in the folder
  std::string record_fault;  // what is wrong with it; then it says nothing

  bool on_real_gpu = false;  // in CUDA: the user asked for the machine's own GPU

  // What the cell is measured on.
  Device device() const {
    if (language == Language::cpp) return Device::cpu;
    return on_real_gpu ? Device::cuda : Device::sim;
  }
};

// The cell that it is measured in.
CellKey key_of(const Submission&);

// Whether a source file may be of an answer in that language: headers are of both.
bool is_of(const std::string& name, Language);

// Reads the sources of the folder: what ends in .cpp .cc .cu .cuh .h .hpp or .inl. They must be
// plain regular files (opened without following links) with names of letters, digits, '_', '-' and
// '.', not starting with '-', '.' or '@'. One that is not sets `rejected`, and so does code that
// was built before (.so, .o, .a ...); never throws. Everything else is ignored. At least one
// submission, C++ before CUDA. Without sources an attempt.json may say that there is no answer.
std::vector<Submission> read_submissions(const std::filesystem::path& directory,
                                         const std::string& model, const std::string& challenge,
                                         const std::string& attempt);

// One source file as the whole answer: what ends in .cu is submission.cu, in .cpp or .cc
// submission.cpp, whatever it is called; nothing beside it is read. The same rules as of a folder's
// files set `rejected`. Throws Error when its name has none of these endings.
Submission read_source_file(const std::filesystem::path& file, const std::string& challenge);

// Every submission below `root` for the given challenges, sorted by (model, challenge, attempt,
// language). A model folder without any known challenge is reported in `warnings`, as is a
// challenge folder whose name is unknown ("did you mean ..."), a model whose name files of results
// cannot hold, what is no part of an answer, and what is wrong with a model.json or attempt.json.
std::vector<Submission> find_submissions(const std::filesystem::path& root,
                                         const std::vector<std::string>& challenges,
                                         std::vector<std::string>& warnings);

// What submissions/<model>/model.json says, nothing where there is none. `fault` tells what is
// wrong with it, by file, line and remedy; then it says nothing: a slip there must not cost a run.
ModelInfo read_model_info(const std::filesystem::path& root, const std::string& model,
                          std::string& fault);

// "a, b, c, d and 12 more": names of files, made printable.
std::string some_of(const std::vector<std::string>& names);

// SHA-256 over names and contents of the sources.
std::string source_hash(const Submission&);

}  // namespace assay
