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
#include <optional>

#include "util/fd.h"
#include "util/files.h"
#include "util/sha256.h"
#include "util/text.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kFileLimit = 4u << 20;
constexpr std::size_t kFileCount = 64;
constexpr std::size_t kNameLimit = 256;  // more than a file system takes
constexpr std::array kSourceEndings{".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp", ".inl"};
constexpr std::array kIgnoredEndings{".md", ".txt"};
constexpr std::array kOnlyCpp{".cpp", ".cc"};
constexpr std::array kOnlyCuda{".cu", ".cuh"};

template <class Endings>
bool has_ending(const std::string& name, const Endings& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* e) { return name.ends_with(e); });
}

// Why a file of this name may not be there, "" if it may.
std::string objection_to_name(const std::string& name) {
  if (name.front() == '-' || name.front() == '@' || name.front() == '.') {
    return fmt::format("names may not start with '{}'", name.front());
  }
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  if (!plain) return "names consist of letters, digits, '_', '-' and '.'";
  if (!has_ending(name, kSourceEndings) && !has_ending(name, kIgnoredEndings)) {
    return "only .cpp, .cc, .cu, .cuh, .h, .hpp, .inl, .md and .txt files may be submitted";
  }
  return {};
}

struct Contents {
  std::string text, objection;
};

// Reads a plain file of the folder without following links.
Contents read_plain_file(int folder, const std::string& name) {
  const Fd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    if (errno == ELOOP) return {"", "is a symbolic link"};
    return {"", fmt::format("cannot be read: {}", std::strerror(errno))};
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {"", "is not a regular file"};
  if (info.st_nlink > 1) return {"", "is a hard link to another file"};
  if (static_cast<std::size_t>(info.st_size) > kFileLimit) return {"", "is larger than 4 MiB"};
  Contents contents;
  contents.text.resize(kFileLimit);
  std::size_t size = 0;
  ssize_t n;
  while ((n = ::read(fd.get(), contents.text.data() + size, kFileLimit - size)) > 0) {
    size += static_cast<std::size_t>(n);
  }
  if (n < 0) return {"", fmt::format("cannot be read: {}", std::strerror(errno))};
  contents.text.resize(size);
  return contents;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    names.push_back(entry.path().filename());
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

bool is_attempt(const fs::path& folder, const std::string& name) {
  return is_number(name) && is_real_directory(folder / name);
}

// The attempts in a challenge folder: its own files, "", and its numbered sub-folders in numeric order.
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
  std::vector<std::string> names;
  std::vector<SourceFile> sources;  // by name
  std::string test_source, rejected;

  bool has(const char* name) const { return std::ranges::find(names, name) != names.end(); }
  void reject(const std::string& name, const std::string& why) {
    rejected = fmt::format("{}: {}", printable(name, 1), why);
    sources.clear();
  }
};

// Of `attempt`; those that lie beside the challenge's own files are no part of "".
Folder read_folder(const fs::path& directory, const std::string& attempt) {
  Folder folder;
  const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    folder.rejected = fmt::format("cannot open {}: {}", directory.string(), std::strerror(errno));
    return folder;
  }
  folder.names = names_in(directory);
  if (attempt.empty()) {
    std::erase_if(folder.names,
                  [&](const std::string& name) { return is_attempt(directory, name); });
  }
  if (folder.names.size() > kFileCount) {
    folder.reject(directory.filename(), "more than 64 files");
    return folder;
  }
  for (const std::string& name : folder.names) {
    std::string objection = objection_to_name(name);
    Contents contents;
    if (objection.empty()) {
      contents = read_plain_file(fd.get(), name);
      objection = contents.objection;
    }
    if (!objection.empty()) {
      folder.reject(name, objection);
      return folder;
    }
    if (has_ending(name, kIgnoredEndings)) continue;
    if (name == "test.cpp") {
      folder.test_source = std::move(contents.text);
    } else {
      folder.sources.push_back({name, std::move(contents.text)});
    }
  }
  if (folder.sources.empty())
    folder.rejected = fmt::format("no source files in {}", directory.string());
  return folder;
}

Submission submission_of(const Folder& folder, Language language) {
  Submission s;
  s.language = language;
  s.rejected = folder.rejected;
  if (language == Language::cpp) s.test_source = folder.test_source;
  const auto belongs = [&](const SourceFile& f) {
    return language == Language::cpp ? !has_ending(f.name, kOnlyCuda)
                                     : !has_ending(f.name, kOnlyCpp);
  };
  std::ranges::copy_if(folder.sources, std::back_inserter(s.sources), belongs);
  // Not of std::ranges: clang 14 cannot compile what that returns.
  std::stable_partition(s.sources.begin(), s.sources.end(),
                        [&](const SourceFile& f) { return f.name == main_file(language); });
  return s;
}

}  // namespace

const char* main_file(Language language) {
  return language == Language::cpp ? "submission.cpp" : "submission.cu";
}

std::vector<Submission> read_submissions(const fs::path& directory, const std::string& model,
                                         const std::string& challenge, const std::string& attempt) {
  Folder folder = read_folder(directory, attempt);
  std::vector<Submission> found;
  for (const Language language : {Language::cpp, Language::cuda}) {
    if (folder.has(main_file(language))) found.push_back(submission_of(folder, language));
  }
  if (found.empty()) {
    folder.sources.clear();
    if (folder.rejected.empty()) folder.rejected = "submission.cpp or submission.cu is missing";
    found.push_back(submission_of(folder, Language::cpp));
  }
  for (Submission& s : found) {
    s.model = model;
    s.challenge = challenge;
    s.attempt = attempt;
    s.directory = directory;
  }
  return found;
}

std::vector<Submission> find_submissions(const fs::path& root,
                                         const std::vector<std::string>& challenges,
                                         std::vector<std::string>& warnings) {
  std::vector<Submission> found;
  for (const std::string& model : names_in(root)) {
    if (model.front() == '.' || !is_real_directory(root / model)) continue;
    if (const std::string shown = printable(model, 1, kNameLimit); shown != model) {
      warnings.push_back(fmt::format("{}/{}: the model's name is not plain text: rename the folder",
                                     root.string(), shown));
      continue;
    }
    std::size_t answered = 0;
    for (const std::string& challenge : names_in(root / model)) {
      const fs::path folder = root / model / challenge;
      if (challenge.front() == '.' || !is_real_directory(folder)) continue;
      if (std::find(challenges.begin(), challenges.end(), challenge) == challenges.end()) {
        warnings.push_back(fmt::format("{}: {}", folder.string(),
                                       unknown_name("challenge", challenge, challenges)));
        continue;
      }
      ++answered;
      for (const std::string& attempt : attempts_in(folder)) {
        std::ranges::move(read_submissions(attempt.empty() ? folder : folder / attempt, model,
                                           challenge, attempt),
                          std::back_inserter(found));
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

std::string source_hash(const Submission& submission) {
  std::string text;
  for (const SourceFile& file : submission.sources) {
    text += fmt::format("{} {}\n", file.name, file.contents.size()) + file.contents;
  }
  text += fmt::format("test.cpp {}\n", submission.test_source.size()) + submission.test_source;
  return sha256_hex(text + submission.rejected);
}

}  // namespace assay
