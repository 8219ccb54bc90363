// Reports the state of a GPU on request.
#pragma once

#include <istream>
#include <ostream>
#include <string>

namespace assay::device {

// Writes a line of JSON (records/gpu_state_json.h) for each line of `questions`, until it ends.
// Throws gpu::ManagementError if the management library is missing or fails.
void watch_gpu(const std::string& management, const std::string& pci_bus_id,
               std::istream& questions, std::ostream& answers);

}  // namespace assay::device
