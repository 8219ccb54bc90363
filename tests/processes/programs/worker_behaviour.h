// What the scripted worker does. The harness chooses by the number of the challenge.
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
  calls_back,       // with made-up sizes and a made-up address
  reports_garbage,  // an unknown reply, with anything in the other fields
  exits_while_loading,
  fails_to_load,        // with an endless message
  cannot_be_stopped,    // a child shares its memory; the kernel stops it only after that
  storms,               // threads send it SIGCONT for ever
  keeps_from_readying,  // prepare never returns
  computes_meanwhile,   // prepare takes a second of processor time
  tells_its_cores,      // as the status; first tries to get more
  keeps_cores_busy,     // with two threads, on whatever cores it can get
  loads_a_pool,         // touches 48 MiB while it loads
  loads_a_little,       // the same, with 512 KiB
  starts_threads,       // as many as allowed; they touch their stacks and allocate a little
  passes_a_pool,        // takes 48 MiB in a call and frees them again
  hoards_output,        // uses the output arena behind the case's buffers
  first_thread_leaves,  // another thread answers this request and all later ones
  bombs,                // allocates memory until something stops it
  does_anything,        // random, seeded by the low bits of the scratch capacity
};

}  // namespace assay::testing
