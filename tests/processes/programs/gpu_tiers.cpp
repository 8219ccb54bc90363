// Tries a driver without a sandbox, with the filter alone and in its full sandbox, and reports
// where it works. For machines on which the driver of the GPU fails in the sandbox.
//
// argv: gpu_tiers [DRIVER]
#include <fmt/format.h>
#include <sys/prctl.h>

#include <exception>

#include "processes/gpu_machine.h"
#include "sandbox/landlock.h"
#include "util/clock.h"

int main(int argc, char** argv) {
  using namespace assay;
  using sandbox::Tier;
  ::prctl(PR_SET_DUMPABLE, 0);  // as the harness does
  const char* const driver = argc > 1 ? argv[1] : "libcuda.so.1";
  fmt::print("Landlock: {}\n", sandbox::landlock_abi());
  int failures = 0;
  for (const Tier tier : {Tier::none, Tier::filter, Tier::landlock}) {
    const double begin = steady_seconds();
    try {
      const GpuMachine gpu = processes::find_gpu({driver}, processes::kManagement, tier);
      fmt::print("{:18} {}, copies at {:.2f} TB/s, in {:.1f} s\n", to_string(tier), gpu.name,
                 gpu.copy_bytes_per_s * 1e-12, steady_seconds() - begin);
    } catch (const std::exception& e) {
      fmt::print("{:18} {}\n", to_string(tier), e.what());
      ++failures;
    }
  }
  return failures == 0 ? 0 : 1;
}
