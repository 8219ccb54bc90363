#include "device/description.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>

#include "device/gpu_speed.h"
#include "device/hardware_gpu.h"
#include "gpu/management.h"
#include "records/gpu_state_json.h"

namespace assay::device {

using nlohmann::ordered_json;

namespace {

// A copy of so many times the L2 cache hardly profits from what the cache holds.
constexpr std::uint64_t kCaches = 16;

}  // namespace

std::string describe(const std::string& driver, const std::string& management) {
  const std::uint64_t copied = kCaches * l2_cache_bytes(driver);
  HardwareGpu gpu(driver, 2 * copied);
  const GpuFacts facts = gpu.facts();
  std::unique_ptr<gpu::Management> manager;
  std::string no_management;
  gpu::GpuSetting setting;
  try {
    manager = std::make_unique<gpu::Management>(management, facts.pci_bus_id);
    setting = manager->setting();
  } catch (const gpu::NoManagement& e) {
    no_management = e.what();
  }
  ordered_json all{{"name", facts.name},
                   {"driver", fmt::format("{}.{}", facts.cuda / 1000, facts.cuda % 1000 / 10)},
                   {"driver_release", json_or_null(setting.driver_release)},
                   {"pci_bus_id", facts.pci_bus_id},
                   {"compute_capability", fmt::format("{}.{}", facts.major, facts.minor)},
                   {"multiprocessors", facts.multiprocessors},
                   {"memory_bytes", facts.memory_bytes},
                   {"ecc", facts.ecc},
                   {"mig", json_or_null(setting.mig)},
                   {"persistence", json_or_null(setting.persistence)},
                   {"max_sm_mhz", json_or_null(setting.max_sm_mhz)},
                   {"max_memory_mhz", json_or_null(setting.max_memory_mhz)},
                   {"copy_bytes_per_s", copy_bytes_per_s(gpu, copied)},
                   {"bf16_flops_per_s", bf16_flops_per_s(gpu, facts.multiprocessors)},
                   {"no_management", no_management}};
  GpuState state;
  std::optional<std::size_t> others;
  if (manager) {
    state = manager->state();
    others = manager->other_processes(std::array{static_cast<unsigned>(::getpid())});
  }
  all["state"] = to_json(state);
  all["other_processes"] = json_or_null(others);
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace assay::device
