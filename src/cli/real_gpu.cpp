#include "cli/real_gpu.h"

#include <fmt/format.h>

#include "cli/output.h"
#include "grade/gpu.h"
#include "run/gpu_machine.h"
#include "util/files.h"

namespace assay::cli {

run::World world_of_gpu(Harness& harness, const std::string& driver, const std::string& sheet) {
  if (!harness.builder->cuda_toolkit())
    throw Error(fmt::format("{}; it is looked for in PATH, CUDA_HOME and ASSAY_NVCC", kNoToolkit));
  harness.machine.gpu = run::find_gpu(driver);
  if (harness.machine.gpu->isolation != to_string(sandbox::Tier::landlock)) {
    tell(
        "note: this kernel has no Landlock (Linux 5.13 or later), so a fault of the GPU's driver "
        "could let an answer at the files of this user\n");
  }
  harness.gpu = sheet.empty() ? sheet_of(harness.machine.gpu->name) : sheet;
  run::World world = run::real_world(*harness.builder);
  world.roofline = [driver, flops = gpu(harness.gpu).fastest_flops()] {
    return Roofline{.bytes_per_s = run::find_gpu(driver).copy_bytes_per_s, .flops_per_s = flops};
  };
  return world;
}

}  // namespace assay::cli
