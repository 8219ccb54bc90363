// waitid(2) with a deadline.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>

namespace assay::sandbox {

enum class Seen : std::uint8_t { nothing, stopped, ended };

// Waits at most `timeout` for one of waitid's `events`, WSTOPPED and WEXITED. Consumes nothing: the
// child can still be waited for afterwards.
Seen wait_for_child(pid_t, int events, std::chrono::nanoseconds timeout);

// For a process that has been killed or is about to exit.
inline constexpr std::chrono::seconds kReapPatience{10};

// Reaps such a child. False if it did not exit in time, or was not there.
bool reap_child(pid_t);

}  // namespace assay::sandbox
