// The memory that harness and worker share, in three memfds:
//
//   control  one page, written by both: the worker's reply. Hostile: read once, bounded.
//   input    written by the harness only (sealed against the worker): header, descriptors, inputs.
//   output   written by both: outputs, inouts, callback payloads.
//
// Requests and replies are single bytes on a line: a socket pair of which harness and worker hold
// one end each, so neither can write what it is to receive. See processes/worker_process.h for the
// protocol. A worker whose submission is in CUDA also has a link to a device process:
// wire/device.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace assay::wire {

// File descriptors of the worker. 0 is unreadable; the harness drains 1 and 2. The memfds are
// closed before the submission is loaded: through them it could keep bytes that nobody counts.
inline constexpr int kControlFd = 3, kInputFd = 4, kOutputFd = 5, kLineFd = 6;
// The worker sends the listener that watches its memory over this socket, once, before it is
// sealed; then the socket is closed.
inline constexpr int kHandoverFd = 7;
// CUDA workers only: the link's memory and its line, and another line for the CUDA runtime's log.
inline constexpr int kLinkFd = 8, kCallFd = 9, kLogFd = 10;

enum class Command : std::uint32_t {
  ping,       // nothing; measures the protocol
  load,       // dlopen the submission, find its symbols
  prepare,    // make the buffers of the case resident, poison freed scratch
  run,        // one phase of the case
  self_test,  // the submission's own tests: assay_self_test(ctx)
};

// Address space of a sparse buffer, of which only parts are accessible: pages of an arena. The
// worker opens its windows when it starts, before it is sealed, with processes/window.h.
struct Window {
  std::uint64_t bytes = 0, in_output = 0;
  std::uint64_t first_part = 0, parts = 0;
};
struct WindowPart {
  std::uint64_t at = 0, offset = 0, bytes = 0;  // in the window and in the arena; whole pages
};

struct BufferSlot {
  std::uint64_t offset = 0, bytes = 0;  // in the window if it has one, else in the arena
  std::uint32_t in_output = 0, null = 0;
  std::uint64_t device =
      0;  // not 0: the buffer is device memory at this address, and in no memfd of the worker's
  std::uint64_t window = 0;  // not 0: the buffer is in this window, counted from 1
};

inline constexpr std::uint32_t kMagic = 0x59415341;  // "ASAY"
inline constexpr std::size_t kMaxSymbols = 48, kMaxSymbolLength = 64;

// At offset 0 of the input memfd. Descriptors and params follow at the given offsets.
struct Header {
  std::uint32_t magic = kMagic;
  Command command = Command::load;
  std::uint64_t request = 0;  // increases with every request, answers to callbacks included
  std::uint64_t case_id = 0;  // differs for each case; a change resets Call::state()
  std::int32_t entry = 0, phase = 0;
  std::int32_t nthreads = 1;
  std::uint32_t challenge = 0;  // index into the adapter table
  std::uint32_t buffers = 0, buffers_offset = 0;
  std::uint32_t params_bytes = 0, params_offset = 0;
  std::uint32_t windows = 0, windows_offset = 0;  // all parts follow the last window
  std::uint64_t callback_offset = 0;              // in the output memfd; request payload
  std::uint64_t callback_response_offset = 0;     // in the input memfd
  std::int32_t callback_status = 0;               // the answer to the latest callback
  std::int32_t callback_bulk_written = 0;  // whether its bulk was written to the requested address
  std::uint64_t measures_memory = 0;       // whether freed scratch goes back to the kernel
  std::uint64_t watch_memory = 0;          // whether calls that shrink memory wait for the harness
  std::uint64_t guard_blocks = 0;          // whether ctx->alloc's blocks have red zones
  std::uint64_t scratch_capacity = 0;      // of ctx->alloc, bytes
  std::uint64_t failing_allocation = 0;    // index in the case of the allocation that gives NULL,
                                           // 0: none
  std::uint32_t required_symbols = 0, optional_symbols = 0;  // required first
  char symbols[kMaxSymbols][kMaxSymbolLength] = {};
};

enum class Reply : std::uint32_t { none, done, callback, load_failed };

// The control page.
struct Control {
  Reply reply = Reply::none;
  std::int32_t status = 0;          // of the submission's call
  std::uint64_t scratch_peak = 0;   // ctx->alloc, bytes
  std::uint64_t allocations = 0;    // requests to ctx->alloc since the case began
  std::int64_t kept_blocks = 0;     // by how many the call increased ctx->alloc's live blocks
  std::uint64_t overrun_side = 0;   // of such a block: 0 none, 1 written before it, 2 after it
  std::uint64_t overrun_bytes = 0;  // what had been requested for it
  std::uint64_t answered = 0;       // Header::request when the worker read it
  std::uint32_t callback_kind = 0;
  std::uint32_t callback_request_bytes = 0, callback_response_bytes = 0;
  std::uint32_t callback_bulk_bytes = 0;    // after the response
  std::uint64_t callback_bulk_address = 0;  // where the worker wants the bulk
  char message[512] = {};                   // load_failed: why
};

static_assert(sizeof(Control) <= 4096, "one page");
static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<BufferSlot> &&
              std::is_trivially_copyable_v<Window> && std::is_trivially_copyable_v<WindowPart> &&
              std::is_trivially_copyable_v<Control>);
// No padding, since the sender's memory could leak through it.
static_assert(std::has_unique_object_representations_v<Header> &&
              std::has_unique_object_representations_v<BufferSlot> &&
              std::has_unique_object_representations_v<Window> &&
              std::has_unique_object_representations_v<WindowPart> &&
              std::has_unique_object_representations_v<Control>);

}  // namespace assay::wire
