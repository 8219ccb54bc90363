#include <array>

#include "assay/results.h"

namespace assay {
namespace {

struct Row {
  Verdict verdict;
  const char* code;
  const char* description;
};

constexpr std::array kRows{
    Row{Verdict::harness_error, "JE", "harness error"},
    Row{Verdict::security_violation, "SV", "security violation"},
    Row{Verdict::protocol_violation, "PV", "protocol violation"},
    Row{Verdict::build_error, "CE", "does not compile"},
    Row{Verdict::build_limit, "CE-limit", "exceeded the compiler's limits"},
    Row{Verdict::load_error, "LE", "does not load"},
    Row{Verdict::memory_limit, "MLE", "memory limit exceeded"},
    Row{Verdict::time_limit, "TLE", "time limit exceeded"},
    Row{Verdict::idle_limit, "TLE-idle", "asleep at the time limit"},
    Row{Verdict::runtime_error, "RE", "runtime error"},
    Row{Verdict::device_error, "DE", "error on the device"},
    Row{Verdict::output_limit, "OLE", "output limit exceeded"},
    Row{Verdict::wrong_answer, "WA", "wrong answer"},
    Row{Verdict::unsupported, "NS", "not supported"},
    Row{Verdict::skipped, "SKIP", "not run"},
    Row{Verdict::ok, "OK", "correct"},
};

const Row& row(Verdict verdict) { return kRows[static_cast<std::size_t>(verdict)]; }

}  // namespace

const char* code(Verdict verdict) { return row(verdict).code; }

const char* description(Verdict verdict) { return row(verdict).description; }

std::optional<Verdict> verdict_from_code(const std::string& text) {
  for (const Row& r : kRows) {
    if (text == r.code) return r.verdict;
  }
  return std::nullopt;
}

}  // namespace assay
