#include "sandbox/landlock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "assay/error.h"
#include "util/files.h"
#include "util/transient_fault.h"

namespace assay::sandbox {
namespace {

// Newer than the headers of Debian 12.
constexpr std::uint64_t kRefer = 1ull << 13, kTruncate = 1ull << 14, kIoctlDev = 1ull << 15;
constexpr std::uint64_t kScopeAbstractUnix = 1, kScopeSignal = 2;

struct RulesetAttr {
  std::uint64_t handled_access_fs = 0, handled_access_net = 0, scoped = 0;
};

constexpr std::uint64_t kReadFile = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
constexpr std::uint64_t kRead = kReadFile | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWriteFolder =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE;

std::uint64_t handled(int abi) {
  std::uint64_t access = (1ull << 13) - 1;  // all of ABI 1
  if (abi >= 2) access |= kRefer;
  if (abi >= 3) access |= kTruncate;
  if (abi >= 5) access |= kIoctlDev;
  return access;
}

std::uint64_t of_devices(int abi) {
  std::uint64_t access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
  if (abi >= 5) access |= kIoctlDev;
  return access;
}

// O_PATH names the file without opening it.
void add_rule(int ruleset, const std::string& host, std::uint64_t of_files,
              std::uint64_t of_folders) {
  const Fd path(::open(host.c_str(), O_PATH | O_CLOEXEC));
  struct stat info {};
  if (!path || ::fstat(path.get(), &info) != 0) fail_with_errno("open", host);
  landlock_path_beneath_attr rule{};
  rule.parent_fd = path.get();
  rule.allowed_access = S_ISDIR(info.st_mode) ? of_folders : of_files;
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    throw_errno(fmt::format("cannot add {} to the Landlock ruleset", host));
  }
}

std::size_t attribute_size(int abi) { return abi >= 6 ? 24 : abi >= 4 ? 16 : 8; }

}  // namespace

int landlock_abi() {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

Fd landlock_ruleset(const std::vector<Mount>& mounts, const std::vector<std::string>& devices) {
  const int abi = landlock_abi();
  if (abi == 0) throw Error("this kernel offers no Landlock");
  RulesetAttr attr;
  attr.handled_access_fs = handled(abi);
  if (abi >= 4) attr.handled_access_net = 3;  // TCP bind and connect
  if (abi >= 6) attr.scoped = kScopeAbstractUnix | kScopeSignal;
  Fd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attr, attribute_size(abi), 0)));
  if (!ruleset) throw_errno("cannot create a Landlock ruleset");
  for (const Mount& mount : mounts) {
    std::uint64_t writing = mount.writable ? kWriteFolder : 0;
    if (mount.writable && abi >= 3) writing |= kTruncate;
    add_rule(ruleset.get(), mount.host, kReadFile | writing, kRead | writing);
  }
  for (const std::string& device : devices) {
    add_rule(ruleset.get(), device, of_devices(abi), of_devices(abi) | LANDLOCK_ACCESS_FS_READ_DIR);
  }
  return ruleset;
}

int landlock_permit_own_threads(int ruleset) {
  const int threads = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (threads < 0) return errno;
  landlock_path_beneath_attr rule{};
  rule.parent_fd = threads;
  rule.allowed_access = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE;
  if (landlock_abi() >= 3) rule.allowed_access |= kTruncate;
  int error = 0;
  // The kernel may drop an entry of /proc that nothing holds and make it anew, and the rule would
  // not apply to the new one. As the working folder it is held for the life of the process.
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0 ||
      ::fchdir(threads) != 0) {
    error = errno;
  }
  ::close(threads);
  return error;
}

int landlock_enter(int ruleset) {
  return ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0 ? 0 : errno;
}

}  // namespace assay::sandbox
