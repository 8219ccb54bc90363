#include "sandbox/workplace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "assay/error.h"
#include "sandbox/owner_tag.h"
#include "util/temporary_folder.h"

namespace assay::sandbox {
namespace fs = std::filesystem;
namespace {

// An empty descriptor when the folder is in use, gone, or not this user's.
Fd lock_folder(const fs::path& path) {
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat held {};
  struct stat named {};
  if (!folder || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return {};
  // Another harness may have removed it as abandoned before it was locked here.
  const bool same = ::fstat(folder.get(), &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
                    held.st_ino == named.st_ino && held.st_uid == ::geteuid();
  return same ? std::move(folder) : Fd();
}

void remove_abandoned(const fs::path& home) {
  std::error_code ec;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(home, ec), end; !ec && at != end; at.increment(ec)) {
    if (at->path().filename().string().starts_with(kWorkplacePrefix)) found.push_back(at->path());
  }
  for (const fs::path& path : found) {
    const Fd lock = lock_folder(path);
    if (lock) fs::remove_all(path, ec);
  }
}

std::vector<fs::path> candidates(const fs::path& home) {
  std::vector<fs::path> result{home};
  if (const char* chosen = std::getenv("TMPDIR")) result.emplace_back(chosen);
  result.insert(result.end(), {"/tmp", "/var/tmp"});
  return result;
}

bool is_full(const fs::path& folder) {
  constexpr std::uint64_t kLeast = 1u << 20;
  struct statvfs disk {};
  return ::statvfs(folder.c_str(), &disk) == 0 &&
         std::uint64_t{disk.f_bavail} * disk.f_frsize < kLeast;
}

// The first of the candidates that serves.
fs::path choose(Tier tier, const fs::path& home) {
  std::string reasons;
  for (const fs::path& folder : candidates(home)) {
    std::string why = why_out_of_reach(tier, folder);
    if (why.empty() && ::access(folder.c_str(), W_OK) != 0) why = std::strerror(errno);
    if (why.empty() && is_full(folder)) why = "its disk is full";
    if (why.empty()) return fs::canonical(folder);
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", folder.string(), why);
  }
  throw Error(
      fmt::format("sandboxed programs can use no folder here ({}): name one with TMPDIR that all "
                  "users can enter and that has room",
                  reasons));
}

}  // namespace

std::string why_out_of_reach(Tier tier, const fs::path& folder) {
  std::error_code ec;
  const fs::path real = fs::canonical(folder, ec);
  if (ec) return ec.message();
  struct statvfs mount {};
  if (::statvfs(real.c_str(), &mount) == 0 && (mount.f_flag & ST_NOEXEC) != 0) {
    return "it is mounted noexec";
  }
  const bool own_root = tier == Tier::namespaces || tier == Tier::none;
  if (own_root || ::geteuid() != 0) return {};
  for (fs::path at = real;; at = at.parent_path()) {
    struct stat info {};
    if (::stat(at.c_str(), &info) != 0) return std::strerror(errno);
    if ((info.st_mode & S_IXOTH) == 0) return at.string() + " is closed to other users";
    if (at == at.root_path()) return {};
  }
}

Workplace::Workplace(Tier tier, const fs::path& home) {
  const fs::path place = choose(tier, home);
  remove_abandoned(home);
  if (place != home) remove_abandoned(place);
  while (!lock_) {
    path_ = make_new_folder(place, kWorkplacePrefix + owner_tag());
    lock_ = lock_folder(path_);
  }
  ::chmod(path_.c_str(), 0711);  // to be entered, not to be listed
}

Workplace::~Workplace() {
  std::error_code ec;
  fs::remove_all(path_, ec);
}

}  // namespace assay::sandbox
