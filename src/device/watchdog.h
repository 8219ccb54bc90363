// Ends the process when it does not get done: what bounds an instruction, a module or a copy bounds
// their processor time only roughly, and a hostile one finds the roughest. See wire/device.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace assay::device {

// Starts a thread that looks at the deadline a few times a second, for the life of the process: as
// Server::deadline().
void watch(const std::atomic<std::uint64_t>& deadline);

}  // namespace assay::device
