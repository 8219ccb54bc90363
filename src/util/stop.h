// A request to stop early, made by SIGINT, SIGTERM or SIGHUP.
//
// Nothing is cut off halfway. Every sandboxed program dies with the request, because its init
// process watches stop_fd(); a thread that waits for it continues at once. Long work calls
// check_stop() before each step, and before it trusts the result of one, since the result of a
// killed program means nothing. The exception unwinds, which cleans up processes, locks and
// temporary files, and main() exits with 128 + the signal's number. A second signal kills the
// process on the spot, as SIGKILL would, unless it comes within kSameRequest of the first:
// timeout(1) and shells send some signals twice.
#pragma once

#include <chrono>

namespace assay {

inline constexpr std::chrono::milliseconds kSameRequest{500};

// Thrown where work stops on request. Not a std::exception, so that code which turns faults into
// verdicts does not mistake it for one.
struct Stopped {};

// Makes the three signals stop requests from now on. An ignored signal stays ignored, as nohup
// wants. Call it once, while the process has one thread.
void stop_on_signals();

// For a child that is about to run somebody else's program: restores the signals' default action.
void restore_stop_signals();

// The signal that asked to stop, or 0 if there was none.
int stop_signal() noexcept;

// Throws Stopped if a stop was requested.
void check_stop();

// Waits `seconds`; throws Stopped at once if a stop is requested during the wait.
void wait_or_stop(double seconds);

// Readable forever once a stop is requested. -1 if stop_on_signals() was not called.
int stop_fd() noexcept;

// "SIGINT"
const char* stop_signal_name() noexcept;

}  // namespace assay
