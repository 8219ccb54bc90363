#include "processes/gpu_machine.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <chrono>

#include "assay/error.h"
#include "processes/channel.h"
#include "records/gpu_state_json.h"
#include "sandbox/driver_files.h"
#include "sandbox/sandbox.h"
#include "sandbox/worker_image.h"
#include "spec/json_schema.h"
#include "util/fd.h"
#include "util/text.h"

namespace assay::processes {

void make_fit_for_driver(sandbox::Tier tier, sandbox::Program& program,
                         const std::vector<std::string>& libraries) {
  sandbox::show_driver(tier, program, libraries);
  for (const std::string& library : libraries)
    program.argv.push_back(sandbox::driver_inside(library));
  program.limits.processes = 0;
  program.limits.open_files = 240;  // below sandbox::kExecDescriptor
  program.limits.file_size = std::uint64_t{1} << 30;
  program.env = {"CUDA_MODULE_LOADING=EAGER", "CUDA_CACHE_DISABLE=1"};
}

void show_gpu(const RealGpu& gpu, sandbox::Program& program) {
  if (!gpu.visible.empty()) program.env.push_back("CUDA_VISIBLE_DEVICES=" + gpu.visible);
  if (!gpu.order.empty()) program.env.push_back("CUDA_DEVICE_ORDER=" + gpu.order);
}

GpuMachine find_gpu(const RealGpu& gpu, const std::string& management) {
  return find_gpu(gpu, management, sandbox::tier_for_driver());
}

GpuMachine find_gpu(const RealGpu& gpu, const std::string& management, sandbox::Tier tier) {
  constexpr std::chrono::seconds kPatience{60};
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Channel text(O_NONBLOCK);
  sandbox::Program program;
  program.exec_fd = sandbox::device_image_fd();
  program.argv = {"device", "--describe"};
  program.fds = {null.get(), text.theirs(), text.theirs()};
  make_fit_for_driver(tier, program, {gpu.driver, management});
  show_gpu(gpu, program);
  sandbox::Process process = sandbox::spawn(tier, program);
  const auto exit = process.wait(kPatience);
  std::string said;
  text.take(said, 4096);
  if (!exit || exit->status != 0) {
    const std::string why = exit ? printable(said, 3) : "the driver does not answer";
    throw Error(
        fmt::format("{} can be used: {}{}",
                    gpu.visible.empty() ? "no GPU" : fmt::format("no GPU '{}'", gpu.visible),
                    why.empty() ? "its process ended" : why, sandbox::driver_hint(tier)));
  }
  const nlohmann::json found = parse_json(said, "what the GPU's process says");
  GpuMachine machine;
  machine.name = found.at("name");
  machine.driver = found.at("driver");
  machine.pci_bus_id = found.at("pci_bus_id");
  machine.compute_capability = found.at("compute_capability");
  machine.multiprocessors = found.at("multiprocessors");
  machine.memory_bytes = found.at("memory_bytes");
  machine.ecc = found.at("ecc");
  machine.copy_bytes_per_s = found.at("copy_bytes_per_s");
  machine.bf16_flops_per_s = found.at("bf16_flops_per_s");
  machine.no_management = found.at("no_management");
  machine.driver_release = value_or_absent<std::string>(found, "driver_release");
  machine.max_sm_mhz = value_or_absent<double>(found, "max_sm_mhz");
  machine.max_memory_mhz = value_or_absent<double>(found, "max_memory_mhz");
  machine.mig = value_or_absent<bool>(found, "mig");
  machine.persistence = value_or_absent<bool>(found, "persistence");
  machine.state = gpu_state_from(found.at("state"));
  machine.other_processes = value_or_absent<int>(found, "other_processes");
  machine.isolation = to_string(tier);
  return machine;
}

}  // namespace assay::processes
