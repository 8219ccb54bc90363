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
constexpr std::array kSourceEndings{".cpp", ".cc", ".h", ".hpp", ".inl"};
constexpr std::array kIgnoredEndings{".md", ".txt"};

template <class Endings>
bool has_ending(const std::string& name, const Endings& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const char* e) { return name.ends_with(e); });
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
    return "only .cpp, .cc, .h, .hpp, .inl, .md and .txt files may be submitted";
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
  struct stat info{};
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
  for (const auto& entry : fs::directory_iterator(folder, ec)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 9 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Puts submission.cpp first; the order of the others is by name already.
void put_main_first(std::vector<SourceFile>& sources) {
  std::stable_partition(sources.begin(), sources.end(),
                        [](const SourceFile& f) { return f.name == "submission.cpp"; });
}

bool is_real_directory(const fs::path& path) {
  return fs::symlink_status(path).type() == fs::file_type::directory;
}

// The attempts in a challenge folder: itself, or its numbered sub-folders in numeric order.
std::vector<std::string> attempts_in(const fs::path& folder) {
  std::vector<std::string> attempts;
  for (const std::string& name : names_in(folder)) {
    if (is_number(name) && is_real_directory(folder / name)) attempts.push_back(name);
  }
  std::sort(attempts.begin(), attempts.end(),
            [](const auto& a, const auto& b) { return std::stol(a) < std::stol(b); });
  if (attempts.empty()) attempts.emplace_back();
  return attempts;
}

}  // namespace

Submission read_submission(const fs::path& directory, std::string model, std::string challenge,
                           std::string attempt) {
  Submission s{std::move(model), std::move(challenge), std::move(attempt), directory, {}, {}, {}};
  const Fd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) {
    s.rejected = fmt::format("cannot open {}: {}", directory.string(), std::strerror(errno));
    return s;
  }
  const auto reject = [&](const std::string& name, const std::string& why) {
    s.rejected = fmt::format("{}: {}", printable(name, 1), why);
    s.sources.clear();
    return s;
  };
  const std::vector<std::string> names = names_in(directory);
  if (names.size() > kFileCount) return reject(directory.filename(), "more than 64 files");
  for (const std::string& name : names) {
    if (const std::string objection = objection_to_name(name); !objection.empty()) {
      return reject(name, objection);
    }
    Contents contents = read_plain_file(folder.get(), name);
    if (!contents.objection.empty()) return reject(name, contents.objection);
    if (has_ending(name, kIgnoredEndings)) continue;
    if (name == "test.cpp") {
      s.test_source = std::move(contents.text);
    } else {
      s.sources.push_back({name, std::move(contents.text)});
    }
  }
  put_main_first(s.sources);
  if (s.sources.empty()) {
    s.rejected = fmt::format("no source files in {}", directory.string());
  } else if (s.sources.front().name != "submission.cpp") {
    s.sources.clear();
    s.rejected = "submission.cpp is missing";
  }
  return s;
}

std::vector<Submission> find_submissions(const fs::path& root, const std::vector<std::string>& challenges,
                                         std::vector<std::string>& warnings) {
  std::vector<Submission> found;
  for (const std::string& model : names_in(root)) {
    if (model.front() == '.' || !is_real_directory(root / model)) continue;
    std::size_t answered = 0;
    for (const std::string& challenge : names_in(root / model)) {
      const fs::path folder = root / model / challenge;
      if (challenge.front() == '.' || !is_real_directory(folder)) continue;
      if (std::find(challenges.begin(), challenges.end(), challenge) == challenges.end()) {
        warnings.push_back(fmt::format("{}: {}", folder.string(), unknown_name("challenge", challenge, challenges)));
        continue;
      }
      ++answered;
      for (const std::string& attempt : attempts_in(folder)) {
        found.push_back(read_submission(attempt.empty() ? folder : folder / attempt, model, challenge, attempt));
      }
    }
    if (answered == 0) {
      warnings.push_back(fmt::format("{} answers no challenge: expected {}/<challenge>/submission.cpp", model,
                                     (root / model).string()));
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
