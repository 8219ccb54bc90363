#include "intake/attempt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "assay/error.h"
#include "records/entrant_json.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/files.h"
#include "util/temporary_folder.h"
#include "util/text.h"

namespace assay::intake {
namespace fs = std::filesystem;
namespace {

constexpr const char* kBegun = ".adding-";

// A folder beside the models, owned by this process until it ends, as its lock tells others.
class BegunFolder {
 public:
  explicit BegunFolder(const fs::path& submissions) {
    for (;;) {
      path_ = make_new_folder(submissions, kBegun);
      fd_ = Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!fd_ && errno != ENOENT) fail_with_errno("open folder", path_);
      // Without lock support, nobody removes it.
      const bool mine = fd_ && (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
      if (mine && fs::exists(path_)) return;
      // Another process removed it as abandoned before it was locked.
    }
  }
  BegunFolder(const BegunFolder&) = delete;
  ~BegunFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  Fd fd_;
};

// Removes folders left by killed processes.
void remove_abandoned(const fs::path& submissions) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(submissions, ec)) {
    if (!entry.path().filename().string().starts_with(kBegun)) continue;
    const Fd fd(::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    std::error_code ignored;
    if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), ignored);
  }
}

// Whether the path stays below its folder: every part is a plain name.
bool stays_below(const fs::path& name) {
  constexpr std::size_t kLongest = 1000;
  if (name.empty() || name.is_absolute() || name.native().size() > kLongest) return false;
  return std::ranges::all_of(name, [](const fs::path& part) {
    return !part.empty() && part != "." && part != ".." &&
           part.native().find('\0') == std::string::npos;
  });
}

void require_storable(const std::string& model, const std::string& challenge, const Answer& answer,
                      const AttemptRecord& record) {
  if (const std::string objection = objection_to_model(model); !objection.empty()) {
    throw Error(
        fmt::format("no model can have the name '{}': {}", printable(model, 1, 80), objection));
  }
  if (!objection_to_name(challenge).empty())
    throw Error(fmt::format("'{}' is the name of no challenge", printable(challenge, 1, 80)));
  if (answer.files.empty() == record.no_answer.empty())
    throw Error("an attempt has either files or a reason why it has none");
  if (answer.files.size() > kMostSources)
    throw Error(fmt::format("an answer has at most {} files", kMostSources));
  std::set<std::string> names;
  for (const SourceFile& file : answer.files) {
    const std::string objection = objection_to_name(file.name);
    if (!objection.empty() || !is_source_name(file.name))
      throw Error(fmt::format("no file of an answer can be '{}'{}{}", printable(file.name, 1, 80),
                              objection.empty() ? "" : ": ", objection));
    if (file.contents.size() > kLargestSource)
      throw Error(fmt::format("{} is larger than {} MiB", file.name, kLargestSource >> 20));
    if (!names.insert(file.name).second)
      throw Error(fmt::format("the answer has {} twice", file.name));
  }
  for (const SourceFile& file : answer.original) {
    if (!stays_below(file.name))
      throw Error(fmt::format("'{}' is no place in the folder of what was received",
                              printable(file.name, 1, 80)));
  }
}

// Writes a new file; it is on disk when the call returns.
void write_new(const fs::path& path, std::string_view contents) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) fail_with_errno("create", path);
  write_all(fd.get(), contents, path);
  if (::fsync(fd.get()) != 0) fail_with_errno("flush", path);
}

void write_attempt(const fs::path& folder, const Answer& answer, const AttemptRecord& record) {
  for (const SourceFile& file : answer.files) write_new(folder / file.name, file.contents);
  for (const SourceFile& file : answer.original) {
    const fs::path path = folder / "original" / file.name;
    create_folder(path.parent_path());
    write_new(path, file.contents);
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory()) flush_folder(entry.path());
  }
  write_new(folder / "attempt.json", to_json(record).dump(1) + "\n");
  flush_folder(folder);
}

// The highest attempt number; 1 if there is only an unnumbered answer.
long last_attempt(const fs::path& folder) {
  constexpr std::size_t kDigits = 9;
  long last = 0;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename();
    const bool number = !name.empty() && name.size() < kDigits &&
                        name.find_first_not_of("0123456789") == std::string::npos;
    if (number) last = std::max(last, std::stol(name));
    if (name.starts_with("submission.")) last = std::max(last, 1L);
  }
  return last;
}

// Returns false if the destination already exists.
bool moved(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS) {  // the file system does not support the flag
    // Attempts are never empty, and rename never replaces a nonempty folder.
    if (::rename(from.c_str(), to.c_str()) == 0) return true;
  }
  if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) return false;
  fail_with_errno("move the attempt to", to);
}

// Moves the first attempt into place together with the challenge's folder, so that a kill leaves no
// folder that looks like an answer without files; later attempts are moved alone.
fs::path put_in_place(const fs::path& begun, const fs::path& model, const std::string& challenge) {
  const fs::path folder = model / challenge, first = begun / challenge / "1";
  create_folder(model);
  if (!fs::exists(folder) && moved(begun / challenge, folder)) {
    flush_folder(model);
    return folder / "1";
  }
  if (!fs::is_directory(folder))
    throw Error(fmt::format("{} is not a folder: move it away", folder.string()));
  for (long n = last_attempt(folder) + 1;; n = std::max(n, last_attempt(folder)) + 1) {
    fs::path attempt = folder / std::to_string(n);
    if (!moved(first, attempt)) continue;
    flush_folder(folder);
    return attempt;
  }
}

}  // namespace

fs::path store_attempt(const fs::path& submissions, const std::string& model,
                       const std::string& challenge, const Answer& answer,
                       const AttemptRecord& record) {
  require_storable(model, challenge, answer, record);
  AttemptRecord dated = record;
  if (dated.date.empty()) dated.date = utc_now();
  create_folder(submissions);
  remove_abandoned(submissions);
  const BegunFolder begun(submissions);
  const fs::path folder = begun.path() / challenge / "1";
  create_folder(folder);
  write_attempt(folder, answer, dated);
  flush_folder(folder.parent_path());
  return put_in_place(begun.path(), submissions / model, challenge);
}

}  // namespace assay::intake
