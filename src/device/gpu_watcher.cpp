#include "device/gpu_watcher.h"

#include "gpu/management.h"
#include "records/gpu_state_json.h"

namespace assay::device {

void watch_gpu(const std::string& management, const std::string& pci_bus_id,
               std::istream& questions, std::ostream& answers) {
  const gpu::Management manager(management, pci_bus_id);
  for (std::string line; std::getline(questions, line);)
    answers << to_json(manager.state()).dump() << '\n' << std::flush;
}

}  // namespace assay::device
