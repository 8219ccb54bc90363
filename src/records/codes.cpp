// Names of cells and of enumerators, as used in files.
#include <array>
#include <span>

#include "assay/results.h"

namespace assay {
namespace {

struct Row {
  Verdict verdict;
  const char* code;
  const char* description;
};

constexpr std::array kRows{
    Row{Verdict::harness_error, "JE", "fault of the harness"},
    Row{Verdict::security_violation, "SV", "security violation"},
    Row{Verdict::protocol_violation, "PV", "protocol violation"},
    Row{Verdict::no_answer, "NA", "no answer"},
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
    Row{Verdict::needs_gpu, "GPU", "needs a GPU"},
    Row{Verdict::skipped, "SKIP", "not run"},
    Row{Verdict::ok, "OK", "correct"},
};

// In the order of each enumeration.
constexpr const char* kTestVerdicts[] = {"accepted", "rejected",     "not_built",
                                         "not_run",  "inconsistent", "house_fault"};
constexpr const char* kNoteKinds[] = {"other",          "no_tests",       "tests_not_run",
                                      "quick",          "stolen_time",    "few_repetitions",
                                      "par_not_faster", "naive_at_floor", "wrong_when_timed",
                                      "needs_gpu",      "throttled",      "clocks_unwatched"};

const Row& row(Verdict verdict) { return kRows[static_cast<std::size_t>(verdict)]; }

template <class Enum>
std::optional<Enum> from_code(std::span<const char* const> codes, const std::string& text) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (text == codes[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

const char* code(Verdict verdict) { return row(verdict).code; }

const char* description(Verdict verdict) { return row(verdict).description; }

std::optional<Verdict> verdict_from_code(const std::string& text) {
  for (const Row& r : kRows) {
    if (text == r.code) return r.verdict;
  }
  return std::nullopt;
}

const char* code(TestVerdict verdict) { return kTestVerdicts[static_cast<std::size_t>(verdict)]; }

std::optional<TestVerdict> test_verdict_from_code(const std::string& text) {
  return from_code<TestVerdict>(kTestVerdicts, text);
}

const char* code(Note::Kind kind) { return kNoteKinds[static_cast<std::size_t>(kind)]; }

std::optional<Note::Kind> note_kind_from_code(const std::string& text) {
  return from_code<Note::Kind>(kNoteKinds, text);
}

std::string to_string(const CellKey& key) {
  std::string text = key.model + "/" + key.challenge;
  if (!key.attempt.empty()) text += "/" + key.attempt;
  if (key.device != Device::cpu) text += std::string(" (") + to_string(key.device) + ")";
  return text;
}

}  // namespace assay
