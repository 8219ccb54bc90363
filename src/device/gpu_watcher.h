// Tells the state of a GPU whenever it is asked.
#pragma once

#include <istream>
#include <ostream>
#include <string>

namespace assay::device {

// Until `questions` ends: a line of JSON (records/gpu_state_json.h) for each line there. Throws
// gpu::ManagementError when the management library is missing or fails.
void watch_gpu(const std::string& management, const std::string& pci_bus_id,
               std::istream& questions, std::ostream& answers);

}  // namespace assay::device
