// What the scripted worker does; the harness chooses by the number of the challenge.
#pragma once

#include <cstdint>

namespace assay::testing {

enum class WorkerBehaviour : std::uint32_t {
  obeys,  // and reports status 3 for a phase, 9 for tests
  exits,
  crashes,
  aborts_with_a_word,
  spins,
  sleeps,
  computes,  // for 150 ms of processor time
  answers_seven_times,
  answers_an_older_request,
  floods,  // 100 KiB on stdout
  makes_a_socket,
  calls_back,       // with sizes and an address of its own making
  reports_garbage,  // an unknown reply, whatever stands in the other fields
  exits_while_loading,
  fails_to_load,        // with a message that has no end
  cannot_be_stopped,    // a child shares its memory; the kernel stops it when that has ended
  storms,               // threads that send it signals to continue, for ever
  keeps_from_readying,  // prepare never ends
  computes_meanwhile,   // prepare takes a second of processor time
  tells_its_cores,      // as the status; tries to have more first
  keeps_cores_busy,     // with two threads, on whatever cores it can get
  loads_a_pool,         // touches 48 MiB while it loads
  loads_a_little,       // the same with 512 KiB
  starts_threads,       // as many as it may, which touch their stacks and allocate a little
  passes_a_pool,        // takes 48 MiB in a call and gives them back
  hoards_output,        // uses the output arena behind the buffers of the case
  first_thread_leaves,  // another one answers this request and all others
  bombs,                // takes memory until something happens
  does_anything,        // drawn from the scratch capacity's last bits
};

}  // namespace assay::testing
