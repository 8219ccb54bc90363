#include "cli/real_gpu.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "assay/error.h"
#include "cli/output.h"
#include "grade/gpu.h"
#include "processes/gpu_watch.h"

namespace assay::cli {

void add_gpu_libraries(CLI::App& app, GpuLibraries& libraries) {
  app.add_option("--driver", libraries.driver, "of a real GPU: CUDA's driver library")
      ->capture_default_str();
  app.add_option("--management", libraries.management,
                 "of a real GPU: NVIDIA's management library, if there is one")
      ->capture_default_str();
}

cases::World world_of_gpu(Harness& harness, const GpuLibraries& libraries,
                          const std::string& sheet) {
  const GpuMachine& machine =
      harness.machine.gpu.emplace(processes::find_gpu(libraries.driver, libraries.management));
  if (machine.isolation != to_string(sandbox::Tier::landlock)) {
    tell(
        "note: this kernel has no Landlock (Linux 5.13 or later), so a fault of the GPU's driver "
        "could let an answer at the files of this user\n");
  }
  if (!harness.builder->cuda_toolkit())
    throw Error(fmt::format("{}; it is looked for in PATH, CUDA_HOME and ASSAY_NVCC", kNoToolkit));
  harness.gpu = sheet.empty() ? sheet_of(machine.name) : sheet;
  cases::World world = cases::real_world(*harness.builder);
  world.roofline = [libraries, flops = gpu_named(harness.gpu).fastest_flops()] {
    return Roofline{
        .bytes_per_s = processes::find_gpu(libraries.driver, libraries.management).copy_bytes_per_s,
        .flops_per_s = flops};
  };
  if (machine.no_management.empty()) {
    const auto watch =
        std::make_shared<processes::GpuWatch>(libraries.management, machine.pci_bus_id);
    world.gpu_state = [watch] { return watch->state(); };
  }
  return world;
}

cases::World world_on(Device device, Harness& harness, const GpuLibraries& libraries,
                      const std::string& sheet) {
  return device == Device::cuda ? world_of_gpu(harness, libraries, sheet)
                                : cases::real_world(*harness.builder);
}

}  // namespace assay::cli
