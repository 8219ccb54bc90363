// A request to end early, made by SIGINT, SIGTERM or SIGHUP.
//
// Nothing is cut off. Every sandboxed program ends with the request, because its init process
// watches stop_fd(): a thread that waits for one goes on at once. Work that lasts looks with
// check_stop() before each step, and before it believes the result of one: what such a program did
// until then says nothing. The exception unwinds, so that processes, locks and temporary files go,
// and main() ends the program with 128 + the signal's number. A second signal ends the process on
// the spot, as SIGKILL would; but not within kSameRequest of the first: timeout(1) and shells send
// some twice.
#pragma once

#include <chrono>

namespace assay {

inline constexpr std::chrono::milliseconds kSameRequest{500};

// Thrown where work ends on request. Not a std::exception, so that nobody who turns faults into
// verdicts takes it for one.
struct Stopped {};

// From now on the three signals are requests. One that is ignored stays ignored, as nohup wants it.
// To be called once, while the process has one thread.
void stop_on_signals();

// For a child that becomes a program of somebody else's: the signals end it as they end any other.
void restore_stop_signals();

// The signal that asked for the end, 0 as long as none did.
int stop_signal() noexcept;

// Throws Stopped once the end was asked for.
void check_stop();

// Waits for so long; throws Stopped at once when the end is asked for during the wait.
void wait_or_stop(double seconds);

// Readable from the request on, for ever. -1 where stop_on_signals() was not called.
int stop_fd() noexcept;

// "SIGINT"
const char* stop_signal_name() noexcept;

}  // namespace assay
