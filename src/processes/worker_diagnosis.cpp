#include "processes/worker_diagnosis.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

#include "util/text.h"

namespace assay::processes {
namespace {

const char* signal_hint(int signal) {
  switch (signal) {
    case SIGSEGV:
      return " (invalid memory access; also what writing to an input or overrunning the stack "
             "gives)";
    case SIGABRT: return " (abort: an uncaught exception, a failed assertion or heap corruption)";
    case SIGILL: return " (illegal instruction)";
    case SIGFPE: return " (integer division by zero)";
    case SIGBUS: return " (access beyond a mapping)";
    default: return "";
  }
}

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1048576.0; }

// The CUDA runtime function that a submission needs and the simulator lacks, or "".
std::string missing_cuda_function(std::string_view linker) {
  constexpr std::string_view kMark = "undefined symbol: ";
  const std::size_t at = linker.find(kMark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = linker.substr(at + kMark.size());
  const std::string_view name = rest.substr(0, rest.find_first_of(" ,;\n"));
  const bool cuda = name.starts_with("cuda") || name.starts_with("__cuda");
  return cuda ? printable(name, 1) : "";
}

}  // namespace

Diagnosis diagnose_end(const EndFacts& end) {
  if (WIFEXITED(end.status)) {
    return {Verdict::runtime_error, fmt::format("the process exited with status {} during the call",
                                                WEXITSTATUS(end.status))};
  }
  const int signal = WTERMSIG(end.status);
  const double limit_mib = mebibytes(end.memory_limit);
  if (signal == SIGSYS) {
    return {Verdict::security_violation, "made a system call that submissions may not make"};
  }
  if (signal == SIGKILL && end.out_of_memory) {
    return {Verdict::memory_limit,
            fmt::format("the kernel ended it at the memory limit of {:.0f} MiB", limit_mib)};
  }
  if (signal == SIGXCPU) {
    return {Verdict::time_limit, "used up the processor time of the whole worker"};
  }
  const bool memory = end.output.find("bad_alloc") != std::string_view::npos ||
                      mebibytes(end.most_resident) - mebibytes(end.arenas) > 0.9 * limit_mib;
  return {
      Verdict::runtime_error,
      fmt::format(
          "ended by {}{}{}", strsignal(signal), signal_hint(signal),
          memory ? fmt::format(" (memory suspected: the limit is {:.0f} MiB)", limit_mib) : "")};
}

Diagnosis diagnose_silence(double time_limit_s, double given_back_s, double processor_s) {
  return {processor_s < 0.3 * time_limit_s ? Verdict::idle_limit : Verdict::time_limit,
          fmt::format(
              "no reply within {:.3g} s{} ({:.2f} s of processor time used)", time_limit_s,
              given_back_s > 0
                  ? fmt::format(" and {:.3g} s in which others had the processors", given_back_s)
                  : "",
              processor_s)};
}

Diagnosis diagnose_load_failure(std::string_view linker, bool in_cuda) {
  if (in_cuda) {
    if (const std::string missing = missing_cuda_function(linker); !missing.empty())
      return needs_gpu(missing);
  }
  return {Verdict::load_error, printable(linker, 3)};
}

Diagnosis needs_gpu(std::string_view missing) {
  return {Verdict::needs_gpu, fmt::format("needs a GPU ({})", missing)};
}

Outcome while_loading(Outcome outcome) {
  if (outcome.verdict != Verdict::ok && outcome.verdict != Verdict::security_violation) {
    outcome.detail = "while loading: " + outcome.detail;
    outcome.verdict = Verdict::load_error;
  }
  return outcome;
}

std::string describe_overrun(std::uint64_t side, std::uint64_t block_bytes) {
  if (side != 1 && side != 2) return {};
  return fmt::format("wrote {} a block of {} bytes that ctx->alloc gave",
                     side == 1 ? "before the start of" : "past the end of", block_bytes);
}

}  // namespace assay::processes
