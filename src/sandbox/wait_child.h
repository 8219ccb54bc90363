// Waiting for what happens to a child process, with a deadline, which waitid(2) does not have.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>

namespace assay::sandbox {

enum class Seen : std::uint8_t { nothing, stopped, ended };

// What happened to the child, at the latest after `timeout`. `events` are waitid's WSTOPPED and
// WEXITED. Whatever it is can still be waited for afterwards.
Seen wait_for_child(pid_t, int events, std::chrono::nanoseconds timeout);

}  // namespace assay::sandbox
