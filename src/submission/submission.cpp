#include "submission/submission.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>

#include "assay/error.h"
#include "records/entrant_json.h"
#include "spec/json_schema.h"
#include "submission/assemble.h"
#include "util/fd.h"
#include "util/files.h"
#include "util/plain_file.h"
#include "util/sha256.h"
#include "util/text.h"
#include "util/transient_fault.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kNameLimit = 256;  // longer than any file system allows
constexpr std::array kSourceEndings{".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp", ".inl"};
constexpr std::array kNotes{".md", ".txt"};
// Code that cannot be read or compiled here.
constexpr std::array kPrebuilt{".so",  ".o",     ".a",      ".obj", ".lib",
                               ".dll", ".cubin", ".fatbin", ".ptx"};
constexpr std::array kOnlyCpp{".cpp", ".cc"}, kOnlyCuda{".cu", ".cuh"};

template <class Endings>
bool has_ending(const std::string& name, const Endings& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* e) { return name.ends_with(e); });
}

// The interface always comes from the harness, whatever the folder contains.
constexpr char kInterface[] = "abi.h";

// Output of the build script that is handed out.
constexpr char kBuilt[] = "submission.so";
// Facts about an attempt, and what was received: see intake/attempt.h.
constexpr char kRecord[] = "attempt.json", kOriginal[] = "original";

// Whether to mention that such a file is ignored. Notes, files that were handed out, and files put
// there together with the answer are not mentioned.
bool is_told(const std::string& name) {
  for (const char* expected : {kInterface, kBuilt, kRecord, kOriginal}) {
    if (name == expected) return false;
  }
  return !has_ending(name, kNotes);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec))
    names.push_back(at->path().filename());
  if (is_fault_of_machine(ec.value()))
    throw_errno(fmt::format("cannot list {}", folder.string()), ec.value());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 9 &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_real_directory(const fs::path& path) {
  return fs::symlink_status(path).type() == fs::file_type::directory;
}

// Links are not followed: what they lead to may change while it is graded.
void warn_of_link(const fs::path& path, std::vector<std::string>& warnings) {
  std::error_code ec;
  if (fs::is_symlink(path, ec) && fs::is_directory(path, ec))
    warnings.push_back(
        fmt::format("{}: is a symbolic link and not read: put the folder itself there",
                    printable(path.string(), 1, kNameLimit)));
}

bool is_attempt(const fs::path& folder, const std::string& name) {
  return is_number(name) && is_real_directory(folder / name);
}

// The attempts in a challenge folder: its own files, "", and its numbered subfolders in numeric
// order.
std::vector<std::string> attempts_in(const fs::path& folder) {
  std::vector<std::string> attempts;
  bool own_files = false;
  for (const std::string& name : names_in(folder)) {
    if (is_attempt(folder, name)) attempts.push_back(name);
    own_files |= name.starts_with("submission.");
  }
  std::sort(attempts.begin(), attempts.end(),
            [](const auto& a, const auto& b) { return std::stol(a) < std::stol(b); });
  if (own_files || attempts.empty()) attempts.insert(attempts.begin(), "");
  return attempts;
}

// The files of a folder, or why it is rejected.
struct Folder {
  std::vector<std::string> names;            // of files that concern the answer
  std::vector<std::string> ignored;          // of the others, except notes
  std::vector<SourceFile> sources;           // by name
  std::map<std::string, std::string> tests;  // contents of test.cpp and test.cu, by name
  std::string rejected;
  AttemptRecord record;
  std::string record_fault;

  bool has(const char* name) const { return std::ranges::find(names, name) != names.end(); }
  void reject(const std::string& name, const std::string& why) {
    rejected = fmt::format("{}: {}", printable(name, 1), why);
    sources.clear();
  }
};

// The line on which the document mentions that key, or 0.
std::ptrdiff_t line_naming(const std::string& text, const std::string& key) {
  const std::size_t at = text.find('"' + key + '"');
  if (key.empty() || at == std::string::npos) return 0;
  return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
}

// Reads a file of facts about who answered. If anything is wrong with it, `fault` says what.
template <class Facts>
Facts read_facts(int folder, const char* name, const fs::path& path, std::string& fault,
                 Facts (*from_json)(const nlohmann::json&)) {
  constexpr const char* kRemedy = "mend it as challenges/entrant.schema.json describes it";
  const PlainFile file = read_plain_file(folder, name, kLargestSource);
  if (!file.objection.empty()) {
    fault = fmt::format("{} {}: {}", path.string(), file.objection, kRemedy);
    return {};
  }
  try {
    return from_json(parse_json(file.contents, path.string()));
  } catch (const FactError& e) {
    const auto line = line_naming(file.contents, e.key());
    fault = fmt::format("{}{}: {}: {}", path.string(), line > 0 ? fmt::format(":{}", line) : "",
                        e.what(), kRemedy);
  } catch (const Error& e) {
    fault = fmt::format("{}: {}", e.what(), kRemedy);
  }
  return {};
}

void read_record(int fd, const fs::path& directory, Folder& folder) {
  folder.record = read_facts<AttemptRecord>(fd, kRecord, directory / kRecord, folder.record_fault,
                                            &attempt_record_from);
}

// Reads the folder of `attempt`. Numbered attempts next to the challenge's own files are not part
// of "".
Folder read_folder(const fs::path& directory, const std::string& attempt) {
  Folder folder;
  const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    if (is_fault_of_machine(errno)) fail_with_errno("open folder", directory);
    folder.rejected = fmt::format("cannot open {}: {}", directory.string(), std::strerror(errno));
    return folder;
  }
  folder.names = names_in(directory);
  if (folder.has(kRecord)) read_record(fd.get(), directory, folder);
  if (attempt.empty()) {
    std::erase_if(folder.names,
                  [&](const std::string& name) { return is_attempt(directory, name); });
  }
  for (const std::string& name : folder.names) {
    if (!is_source_name(name) && is_told(name)) folder.ignored.push_back(name);
  }
  std::erase_if(folder.names, [](const std::string& name) { return !is_source_name(name); });
  if (folder.names.size() > kMostSources) {
    folder.reject(directory.filename(), "more than 64 source files");
    return folder;
  }
  for (const std::string& name : folder.names) {
    std::string objection = objection_to_name(name);
    PlainFile contents;
    if (objection.empty()) {
      contents = read_plain_file(fd.get(), name, kLargestSource);
      objection = contents.objection;
    }
    if (!objection.empty()) {
      folder.reject(name, objection);
      return folder;
    }
    if (is_tests_file(name)) {
      folder.tests[name] = std::move(contents.contents);
    } else {
      folder.sources.push_back({name, std::move(contents.contents)});
    }
  }
  if (folder.sources.empty())
    folder.rejected = fmt::format("no source files in {}", directory.string());
  return folder;
}

Submission submission_of(const Folder& folder, Language language) {
  Submission s = submission_from(folder.sources, language);
  if (const auto tests = folder.tests.find(tests_file(language)); tests != folder.tests.end())
    s.test_source = tests->second;
  s.rejected = folder.rejected;
  s.ignored = folder.ignored;
  s.record = folder.record;
  s.record_fault = folder.record_fault;
  return s;
}

}  // namespace

const char* main_file(Language language) {
  return language == Language::cpp ? "submission.cpp" : "submission.cu";
}

const char* tests_file(Language language) {
  return language == Language::cpp ? "test.cpp" : "test.cu";
}

bool is_tests_file(const std::string& name) {
  return name == tests_file(Language::cpp) || name == tests_file(Language::cuda);
}

bool is_source_name(const std::string& name) {
  return name != kInterface && has_ending(name, kSourceEndings);
}

std::string objection_to_name(const std::string& name) {
  if (name.empty()) return "names may not be empty";
  constexpr std::size_t kLongest = 100;  // file systems take 255, and temporary files need some
  if (name.size() > kLongest) return fmt::format("names have at most {} bytes", kLongest);
  if (name.front() == '-' || name.front() == '@' || name.front() == '.') {
    return fmt::format("names may not start with '{}'", name.front());
  }
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  if (!plain) return "names consist of letters, digits, '_', '-' and '.'";
  if (has_ending(name, kPrebuilt)) return "answers are sources: nothing is built beforehand";
  return {};
}

std::string objection_to_model(const std::string& name) {
  if (name.empty()) return "it is empty";
  if (name.size() >= kNameLimit) return "it is too long for the name of a folder";
  if (name.front() == '.') return "a folder whose name starts with '.' is no model's";
  if (name.find('/') != std::string::npos) return "it is the name of a folder, without '/'";
  if (printable(name, 1, kNameLimit) != name) return "it is not plain text";
  return {};
}

CellKey key_of(const Submission& s) {
  return {.model = s.model, .challenge = s.challenge, .attempt = s.attempt, .device = s.device()};
}

bool is_of(const std::string& name, Language language) {
  return !has_ending(name, language == Language::cpp ? kOnlyCuda : kOnlyCpp);
}

std::vector<Submission> read_submissions(const fs::path& directory, const std::string& model,
                                         const std::string& challenge, const std::string& attempt) {
  Folder folder = read_folder(directory, attempt);
  std::vector<Submission> found;
  for (const Language language : {Language::cpp, Language::cuda}) {
    if (folder.has(main_file(language))) found.push_back(submission_of(folder, language));
  }
  if (found.empty() && folder.names.empty() && !folder.record.no_answer.empty()) {
    folder.rejected.clear();
    found.push_back(
        submission_of(folder, folder.record.language == "cuda" ? Language::cuda : Language::cpp));
    found.back().no_answer = folder.record.no_answer;
  }
  if (found.empty()) {
    folder.sources.clear();
    if (folder.rejected.empty()) folder.rejected = "submission.cpp or submission.cu is missing";
    found.push_back(submission_of(folder, Language::cpp));
  }
  for (Submission& s : found) {
    if (s.no_answer.empty())
      s.record.no_answer.clear();  // there is an answer, whatever the record
                                   // says
    s.model = model;
    s.challenge = challenge;
    s.attempt = attempt;
    s.directory = directory;
  }
  return found;
}

Submission read_source_file(const fs::path& file, const std::string& challenge) {
  const std::string name = file.filename();
  const bool cuda = name.ends_with(".cu");
  if (!cuda && !has_ending(name, kOnlyCpp)) {
    throw Error(fmt::format("{}: an answer is a folder, or a file that ends in .cpp, .cc or .cu",
                            printable(file.string(), 1, kNameLimit)));
  }
  Submission s;
  s.challenge = challenge;
  s.directory = file.parent_path();
  s.language = cuda ? Language::cuda : Language::cpp;
  const fs::path folder = s.directory.empty() ? fs::path(".") : s.directory;
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail_with_errno("open", folder);
  PlainFile file_read = read_plain_file(fd.get(), name, kLargestSource);
  if (file_read.objection.empty()) {
    s.sources.push_back({main_file(s.language), std::move(file_read.contents)});
  } else {
    s.rejected = fmt::format("{}: {}", printable(name, 1), file_read.objection);
  }
  return s;
}

std::vector<Submission> find_submissions(const fs::path& root,
                                         const std::vector<std::string>& challenges,
                                         std::vector<std::string>& warnings) {
  std::vector<Submission> found;
  for (const std::string& model : names_in(root)) {
    if (model.front() == '.') continue;
    if (!is_real_directory(root / model)) {
      warn_of_link(root / model, warnings);
      continue;
    }
    if (const std::string shown = printable(model, 1, kNameLimit); shown != model) {
      warnings.push_back(fmt::format("{}/{}: the model's name is not plain text: rename the folder",
                                     root.string(), shown));
      continue;
    }
    std::string misdescribed;
    read_model_info(root, model, misdescribed);
    if (!misdescribed.empty()) warnings.push_back(misdescribed);
    std::size_t answered = 0;
    for (const std::string& challenge : names_in(root / model)) {
      const fs::path folder = root / model / challenge;
      if (challenge.front() == '.') continue;
      if (!is_real_directory(folder)) {
        warn_of_link(folder, warnings);
        continue;
      }
      if (std::find(challenges.begin(), challenges.end(), challenge) == challenges.end()) {
        warnings.push_back(fmt::format("{}: {}", folder.string(),
                                       unknown_name("challenge", challenge, challenges)));
        continue;
      }
      ++answered;
      for (const std::string& attempt : attempts_in(folder)) {
        std::vector<Submission> answers = read_submissions(
            attempt.empty() ? folder : folder / attempt, model, challenge, attempt);
        if (const auto& ignored = answers.front().ignored; !ignored.empty()) {
          warnings.push_back(fmt::format("{}: not part of the answer: {}",
                                         answers.front().directory.string(), some_of(ignored)));
        }
        if (const std::string& fault = answers.front().record_fault; !fault.empty())
          warnings.push_back(fault);
        std::ranges::move(answers, std::back_inserter(found));
      }
    }
    if (answered == 0) {
      warnings.push_back(
          fmt::format("{} answers no challenge: expected {}/<challenge>/submission.cpp or .cu",
                      model, (root / model).string()));
    }
  }
  return found;
}

ModelInfo read_model_info(const fs::path& root, const std::string& model, std::string& fault) {
  constexpr const char* kModelFile = "model.json";
  const fs::path folder = root / model;
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstatat(fd.get(), kModelFile, &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return read_facts<ModelInfo>(fd.get(), kModelFile, folder / kModelFile, fault, &model_info_from);
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4, kLength = 60;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    if (i > 0) text += ", ";
    text += printable(names[i], 1, kLength);
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

std::string source_hash(const Submission& submission) {
  std::string text;
  for (const SourceFile& file : submission.sources) {
    text += fmt::format("{} {}\n", file.name, file.contents.size()) + file.contents;
  }
  // The same name for both languages, so that what is already measured keeps its hash.
  text += fmt::format("test.cpp {}\n", submission.test_source.size()) + submission.test_source;
  return sha256_hex(text + submission.rejected + submission.no_answer);
}

}  // namespace assay
