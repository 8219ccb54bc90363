// Turns the facts of a worker's end into a verdict and its wording. Nothing here looks at a
// process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "assay/results.h"
#include "processes/protocol_violation.h"
#include "processes/worker.h"

namespace assay::processes {

struct Diagnosis {
  Verdict verdict;
  std::string detail;

  Diagnosis(Verdict v, std::string d) : verdict(v), detail(std::move(d)) {}
  Diagnosis(const ProtocolViolation& violation)
      : verdict(ProtocolViolation::kVerdict), detail(violation.detail()) {}
};

// Facts about a process that ended by itself.
struct EndFacts {
  int status = 0;  // as waitpid gives it
  // In bytes. most_resident, the peak, includes the arenas.
  std::uint64_t most_resident = 0, arenas = 0, memory_limit = 0;
  bool out_of_memory = false;  // the kernel killed it because it reached its memory group's limit
  std::string_view output{};   // what it printed
};
Diagnosis diagnose_end(const EndFacts&);

// No reply came in time. The limit had been extended by `given_back_s`; it used `processor_s`.
Diagnosis diagnose_silence(double time_limit_s, double given_back_s, double processor_s);

// The worker reports that the submission does not load. `linker`: the message of dlopen.
Diagnosis diagnose_load_failure(std::string_view linker, bool in_cuda);

// `missing`: the function or instruction that the simulated device lacks.
Diagnosis needs_gpu(std::string_view missing);

// The outcome of loading: any way of dying is a load error, except a forbidden system call.
Outcome while_loading(Outcome);

// Which side of which ctx->alloc block the call overran, or "". `side` is as in wire::Control, and
// hostile.
std::string describe_overrun(std::uint64_t side, std::uint64_t block_bytes);

}  // namespace assay::processes
