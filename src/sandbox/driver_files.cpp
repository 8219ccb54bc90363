#include "sandbox/driver_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string_view>

#include "assay/error.h"
#include "sandbox/landlock.h"
#include "sandbox/runtime_files.h"
#include "sandbox/workplace.h"

namespace assay::sandbox {
namespace fs = std::filesystem;
namespace {

// Landlock hides the environment and the memory of other processes in /proc.
constexpr std::array kReadable{"/usr",        "/lib",  "/lib32", "/lib64", "/etc/ld.so.cache",
                               "/etc/nvidia", "/proc", "/sys"};
constexpr std::array kPlainDevices{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"};
constexpr std::string_view kOfNvidia = "nvidia";
// Libraries that the driver loads from its own folder, such as the PTX compiler.
constexpr std::array<std::string_view, 2> kLibraries{"libcuda.so", "libnvidia-"};

bool is_path(const std::string& driver) { return driver.find('/') != std::string::npos; }

bool is_library_of_driver(const std::string& name) {
  for (const std::string_view beginning : kLibraries) {
    if (name.starts_with(beginning)) return true;
  }
  return false;
}

void show(Program& program, const fs::path& path) {
  if (fs::exists(path)) program.mounts.push_back({path, path, false});
}

// Shows the libraries of a driver that is named by its path, but not their folder, which could be
// any.
void show_library(Tier tier, Program& program, const fs::path& driver) {
  if (!fs::exists(driver)) return;  // the dynamic linker says so
  const fs::path folder = fs::canonical(driver).parent_path();
  if (const std::string why = why_out_of_reach(tier, folder); !why.empty()) {
    throw Error(
        fmt::format("the process of the GPU cannot load {}: {}; name one that every user can "
                    "read",
                    driver.string(), why));
  }
  show(program, fs::canonical(driver));
  std::error_code ec;
  for (const fs::path& beside : {driver.parent_path(), folder}) {
    for (fs::directory_iterator at(beside, ec), end; !ec && at != end; at.increment(ec)) {
      if (is_library_of_driver(at->path().filename())) show(program, at->path());
    }
  }
}

void show_devices(Program& program) {
  for (const char* device : kPlainDevices) {
    if (fs::exists(device)) program.devices.emplace_back(device);
  }
  std::error_code ec;
  for (fs::directory_iterator at("/dev", ec), end; !ec && at != end; at.increment(ec)) {
    if (at->path().filename().string().starts_with(kOfNvidia))
      program.devices.push_back(at->path());
  }
}

}  // namespace

Tier tier_for_driver() { return landlock_abi() > 0 ? Tier::landlock : Tier::filter; }

std::string driver_inside(const std::string& driver) {
  return is_path(driver) ? fs::absolute(driver).lexically_normal().string() : driver;
}

void show_driver(Tier tier, Program& program, const std::vector<std::string>& libraries) {
  program.policy = Policy::driver;
  program.mounts = runtime_mounts(Runtime::image);
  for (const char* path : kReadable) show(program, path);
  for (const std::string& library : libraries) {
    if (is_path(library)) show_library(tier, program, driver_inside(library));
  }
  show_devices(program);
}

std::string driver_hint(Tier tier) {
  if (tier == Tier::none) return {};
  std::error_code ec;
  if (fs::exists("/dev/nvidiactl", ec) && !fs::exists("/dev/nvidia-uvm", ec)) {
    return "; there is no /dev/nvidia-uvm, and the driver's process may not make it: run "
           "`nvidia-modprobe -u -c=0` once, as root";
  }
  return fmt::format(
      "; the driver runs in a sandbox ({}{}): where other programs can use the GPU, `strace -fZ` "
      "of "
      "this command shows what it was refused (docs/gpu.md)",
      to_string(tier), ::geteuid() == 0 ? ", as a user of its own" : "");
}

}  // namespace assay::sandbox
