#include "sandbox/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "util/files.h"

namespace assay::sandbox {
namespace {

constexpr const char* kAttempts[] = {"none",      "read_etc",  "read_root_home", "read_proc",
                                     "write_tmp", "write_usr", "environment",    "inherited_fd",
                                     "be_root",   "fork",      "socket",         "signal_others"};

ProbeResult attempt_escape(Tier tier, int worker_image, const std::string& attempt) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Program program;
  program.mounts = library_mounts();
  program.limits.processes = 4;
  program.exec_fd = worker_image;
  program.argv = {"worker", "--probe", attempt};
  program.fds.assign(8, null.get());
  Process process = spawn(tier, program);
  const auto exit = process.wait(std::chrono::seconds(5));
  if (!exit) return {attempt, false, "hung"};
  if (WIFSIGNALED(exit->status)) {
    const bool filter = WTERMSIG(exit->status) == SIGSYS;
    return {attempt, filter, filter ? "killed by the filter" : strsignal(WTERMSIG(exit->status))};
  }
  const int code = WEXITSTATUS(exit->status);
  return {attempt, code == 0, code == 0 ? "refused" : code == 1 ? "SUCCEEDED" : "probe failed"};
}

// Empty when the tier works and holds, else why not.
std::string try_tier(Tier tier, int worker_image, std::vector<ProbeResult>& probes) {
  probes.clear();
  try {
    for (const char* attempt : kAttempts) {
      probes.push_back(attempt_escape(tier, worker_image, attempt));
      if (!probes.back().contained) {
        return fmt::format("the escape '{}' was not contained ({})", attempt,
                           probes.back().outcome);
      }
    }
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

std::vector<Mount> library_mounts() {
  std::vector<Mount> mounts;
  for (const char* path : {"/usr/lib", "/usr/lib64", "/usr/lib32", "/lib", "/lib64"}) {
    std::error_code ec;
    if (std::filesystem::exists(path, ec)) mounts.push_back({path, path, false});
  }
  if (std::filesystem::exists("/etc/ld.so.cache")) {
    mounts.push_back({"/etc/ld.so.cache", "/etc/ld.so.cache", false});
  }
  return mounts;
}

TierReport find_tier(int worker_image) {
  TierReport report;
  report.why_not_namespaces = try_tier(Tier::namespaces, worker_image, report.probes);
  if (report.why_not_namespaces.empty()) {
    report.tier = Tier::namespaces;
    return report;
  }
  report.why_not_landlock = try_tier(Tier::landlock, worker_image, report.probes);
  if (report.why_not_landlock.empty()) report.tier = Tier::landlock;
  return report;
}

}  // namespace assay::sandbox
