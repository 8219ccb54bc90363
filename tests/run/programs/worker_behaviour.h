// What the scripted worker does; the harness chooses by the number of the challenge.
#pragma once

#include <cstdint>

namespace assay::run::testing {

enum class WorkerBehaviour : std::uint32_t {
  obeys,  // and reports status 3 for a phase, 9 for tests
  exits,
  crashes,
  aborts_with_a_word,
  spins,
  sleeps,
  counts_seven,  // on the eventfd of replies: one answer, and six that nobody asked for
  answers_an_older_request,
  floods,  // 100 KiB on stdout
  makes_a_socket,
  calls_back,       // with sizes and an address of its own making
  reports_garbage,  // an unknown reply, whatever stands in the other fields
  exits_while_loading,
  fails_to_load,  // with a message that has no end
};

}  // namespace assay::run::testing
