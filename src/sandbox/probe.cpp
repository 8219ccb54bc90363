#include "sandbox/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "assay/error.h"
#include "sandbox/runtime_files.h"
#include "sandbox/workplace.h"
#include "util/files.h"
#include "util/transient_fault.h"

namespace assay::sandbox {
namespace fs = std::filesystem;
namespace {

struct Attempt {
  std::string name;
  std::string action;  // of worker/probe.h
  std::string target;  // a path or a process id, "" where the action needs none
};

// The files around a sandboxed program: a folder that it is shown, and another model's beside it.
struct Surroundings {
  explicit Surroundings(Tier tier) : place(tier, "") {
    fs::create_directory(given);
    fs::create_directory(neighbour.parent_path());
    write_file_atomically(neighbour, "secret");
    write_file_atomically(given / "private", "secret");
    fs::permissions(given, fs::perms(0755));
    fs::permissions(neighbour.parent_path(), fs::perms(0755));
    fs::permissions(neighbour, fs::perms(0644));
    fs::permissions(given / "private", fs::perms(0600));
  }
  Workplace place;
  fs::path given = place.path() / "given",
           neighbour = place.path() / "neighbour" / "submission.cpp";
  Mount shown{given, "/given", false};
};

std::vector<Attempt> attempts(Tier tier, const Surroundings& around) {
  const fs::path given = visible(tier, around.shown);
  std::vector<Attempt> result;
  for (const char* name :
       {"none", "environment", "inherited_fd", "be_root", "fork", "socket", "signal_others",
        "affinity", "continue_itself", "continue_by_a_long_number", "stop_itself", "wait_on_shared",
        "huge_pages", "shared_memory", "more_filters", "thread_as_by_vfork"}) {
    result.push_back({name, name, ""});
  }
  const std::string harness = std::to_string(::getpid()), proc = "/proc/" + harness;
  result.insert(result.end(), {{"read_etc", "read", "/etc/passwd"},
                               {"read_root_home", "list", "/root"},
                               {"read_proc", "read", "/proc/self/environ"},
                               {"write_tmp", "write", "/tmp/assay_probe"},
                               {"write_usr", "write", "/usr/assay_probe"},
                               {"read_neighbour", "read", around.neighbour},
                               {"write_neighbour", "write", around.neighbour},
                               {"list_neighbours", "list", around.place.path()},
                               {"write_given", "write", given / "new"},
                               {"read_harness_memory", "read", proc + "/mem"},
                               {"list_harness_files", "list", proc + "/fd"},
                               {"trace_harness", "trace", harness}});
  for (const Mount& file : runtime_mounts(Runtime::answer)) {
    if (!fs::path(file.inside).filename().string().starts_with("ld-")) continue;
    result.push_back({"execute_the_linker", "execute", visible(tier, file)});
  }
  if (const fs::path library = foreign_library(); !library.empty()) {
    result.push_back({"load_" + library.filename().string(), "load", library});
  }
  // An ordinary user's sandbox keeps that user's id.
  if (::geteuid() == 0) result.push_back({"read_private_file", "read", given / "private"});
  return result;
}

// The worker's wait status; nothing when it hung.
std::optional<int> run_probe(Tier tier, int worker_image, const Mount& shown,
                             const std::string& action, const std::string& target) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Program program;
  program.mounts = runtime_mounts(Runtime::answer);
  program.mounts.push_back(shown);
  program.limits.processes = 4;
  program.exec_fd = worker_image;
  program.argv = {"worker", "--probe", action, target};
  program.fds.assign(8, null.get());
  Process process = spawn(tier, program);
  const auto exit = process.wait(std::chrono::seconds(5));
  if (!exit) return std::nullopt;
  return exit->status;
}

ProbeResult attempt_escape(Tier tier, int worker_image, const Surroundings& around,
                           const Attempt& attempt) {
  const std::optional<int> status =
      run_probe(tier, worker_image, around.shown, attempt.action, attempt.target);
  if (!status) return {attempt.name, false, "hung"};
  if (WIFSIGNALED(*status)) {
    const int signal = WTERMSIG(*status);
    const bool filter = signal == SIGSYS;
    return {attempt.name, filter, filter ? "killed by the filter" : strsignal(signal)};
  }
  const int code = WEXITSTATUS(*status);
  return {attempt.name, code == 0,
          code == 0   ? "refused"
          : code == 1 ? "SUCCEEDED"
                      : "probe failed"};
}

// A fault that passes, such as too many processes, must not lead to a weaker tier.
std::vector<ProbeResult> attempt_patiently(Tier tier, int worker_image) {
  constexpr int kTries = 3;
  constexpr std::chrono::milliseconds kMoment{200};
  for (int left = kTries - 1;; --left) {
    try {
      return attempt_escapes(tier, worker_image);
    } catch (const TransientFault&) {
      if (left == 0) throw;
    }
    std::this_thread::sleep_for(kMoment);
  }
}

// Why the tier does not work or does not contain every attempt; "" when it does.
std::string try_tier(Tier tier, int worker_image, std::vector<ProbeResult>& probes) {
  probes.clear();
  try {
    probes = attempt_patiently(tier, worker_image);
  } catch (const std::exception& e) {
    return e.what();
  }
  const auto escape = std::ranges::find(probes, false, &ProbeResult::contained);
  if (escape == probes.end()) return {};
  return fmt::format("the escape '{}' was not contained ({})", escape->attempt, escape->outcome);
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

std::vector<ProbeResult> attempt_escapes(Tier tier, int worker_image) {
  if (tier == Tier::none) throw Error("without isolation, escapes would succeed");
  const Surroundings around(tier);
  std::vector<ProbeResult> results;
  for (const Attempt& attempt : attempts(tier, around)) {
    results.push_back(attempt_escape(tier, worker_image, around, attempt));
  }
  return results;
}

std::string why_not_loaded(Tier tier, int worker_image, const fs::path& library) {
  const Mount shown{library, "/submission.so", false};
  const std::optional<int> status =
      run_probe(tier, worker_image, shown, "load", visible(tier, shown));
  if (!status) return "the worker hung";
  if (WIFSIGNALED(*status)) {
    return fmt::format("the worker was killed ({})", strsignal(WTERMSIG(*status)));
  }
  return WEXITSTATUS(*status) == 1 ? "" : "the worker cannot load a library";
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
