// Faults that the simulator's checks found in a kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::sim {

enum class FindingKind : std::uint8_t {
  out_of_bounds,  // an access outside every allocation of its memory
  misaligned,
  use_after_free,
  uninitialised,  // a value in global or shared memory that nothing wrote decides something
  shared_race,    // two threads of a block, one of them writing, without anything that orders them
  global_race,    // likewise between two blocks
  stream_race,    // likewise between two launches or copies that no stream or event orders
  late_change,    // the host changed data that a copy in a stream may still have to read
  equal_stores,   // a race of stores that all write the same value: a note, not a fault
  barrier_divergence,  // threads wait at different barriers, or some never arrive
  deadlock,            // no thread can continue
  warp_sync,  // a .sync operation whose mask names lanes that never arrive, or omits the executing
              // lane
  assertion,  // __assertfail
  trap,
  instruction_limit,
  read_only,  // a write to constant memory
};

const char* to_string(FindingKind);

struct ThreadId {
  std::uint32_t block[3] = {0, 0, 0};
  std::uint32_t thread[3] = {0, 0, 0};
};

// The thread is not set for stream_race and late_change.
struct Finding {
  FindingKind kind{};
  std::string kernel;  // demangled
  ThreadId thread;
  std::string where;        // "topk.cu:41"
  std::string text;         // one sentence: what was accessed, and how far outside which allocation
  std::string other;        // races: the other access, with its thread and place
  std::uint64_t count = 1;  // how often at this place; only the first is described

  std::string describe() const;
};

// Whether execution cannot continue after it (the launch ends with an error, as on hardware).
bool is_fatal(FindingKind);
// Whether it is only worth knowing: a note fails nothing.
bool is_note(FindingKind);

}  // namespace assay::sim
