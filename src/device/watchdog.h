// Kills the process if it does not finish in time: the limits on instructions, modules and copies
// bound processor time only roughly, and hostile code finds the weakest bound. See wire/device.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace assay::device {

// Starts a thread that checks the deadline a few times a second for the life of the process; for
// the meaning see Server::deadline().
void watch(const std::atomic<std::uint64_t>& deadline);

}  // namespace assay::device
