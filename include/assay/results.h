// Everything a run produces, and what the scoreboard stores. Plain data in SI units.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/challenge.h"
#include "assay/code_facts.h"
#include "assay/device.h"
#include "assay/entrant.h"
#include "assay/gpu_state.h"
#include "assay/revision.h"

namespace assay {

// Ordered by precedence: when several apply, the smallest wins.
enum class Verdict : std::uint8_t {
  harness_error,       // JE: ours; never scored
  security_violation,  // SV: a forbidden system call
  protocol_violation,  // PV: tampered with the worker protocol
  no_answer,           // NA: an attempt was made and gave none; scores 0
  build_error,         // CE: did not compile
  build_limit,         // CE-limit: compiler ran out of time, memory or output
  load_error,          // LE: missing symbol, failed or exited while loading
  memory_limit,        // MLE
  time_limit,          // TLE: busy until the limit
  idle_limit,          // TLE-idle: asleep until the limit
  runtime_error,       // RE: signal, exit or exception during a call
  device_error,        // DE: a finding of the simulator's checks: a race, an access out of bounds
  output_limit,        // OLE: too much on stdout or stderr
  wrong_answer,        // WA
  unsupported,         // returned ASSAY_ENOTSUP: costs only its capability
  needs_gpu,           // not run: asks for what the simulator lacks
  skipped,             // not run for another reason; says why
  ok,
};

const char* code(Verdict);         // "WA"
const char* description(Verdict);  // "wrong answer"
std::optional<Verdict> verdict_from_code(const std::string&);

// Whether something was run, by anybody's fault or none: neither skipped nor in need of a GPU.
constexpr bool was_run(Verdict v) { return v != Verdict::skipped && v != Verdict::needs_gpu; }

// One paired repetition of a timed case: seconds of each implementation on the same input. Absent
// where that implementation was not run in this repetition.
struct TimingSample {
  std::optional<double> naive, par, submission;
};

struct CaseResult {
  std::string name;
  CaseGroup group = CaseGroup::core;
  Verdict verdict = Verdict::skipped;
  std::uint64_t seed = 0;
  std::string shape;
  std::optional<double> error, bound, accuracy;
  std::string detail;  // first mismatch, signal, or why it was skipped
  // Wall clock inside the submission, correctness cases. On a simulated device it says nothing
  // about speed.
  double seconds = 0;
  std::vector<Metric> metrics;
  std::vector<TimingSample> samples;  // timed cases
};

struct BuildRecord {
  Verdict verdict = Verdict::ok;  // ok, no_answer, build_error, build_limit
  std::string source_hash;        // SHA-256 over names and contents of the sources
  std::string command;            // with harness-chosen file names
  std::string log;                // the first lines, escaped and truncated
  double seconds = 0;
  bool cached = false;
};

// What a submission's own tests made of an implementation that is known to be right or wrong.
enum class TestVerdict : std::uint8_t {
  accepted,
  rejected,      // by the tests' word, or it crashed under them
  not_built,     // the tests, or the two together, do not compile
  not_run,       // the harness could not; says why
  inconsistent,  // accepted one of two twins that behave alike, and rejected the other
  house_fault,   // rejected, and by the reference it was wrong there though it is held for right
};

const char* code(TestVerdict);  // "accepted"
std::optional<TestVerdict> test_verdict_from_code(const std::string&);

struct Mutant {
  std::string subject;   // "naive", "par" or the name of a wrong example
  bool correct = false;  // naive and par are; tests must accept these and reject the others
  TestVerdict verdict = TestVerdict::not_run;
  std::string reason{};  // what the tests returned, the signal, the compiler's log
  double seconds = 0;

  bool judged_rightly() const {
    return verdict == TestVerdict::house_fault ||
           verdict == (correct ? TestVerdict::accepted : TestVerdict::rejected);
  }
};

// A remark on a cell or its score. Code acts on the kind, people read the text.
struct Note {
  enum class Kind : std::uint8_t {
    other,
    no_tests,         // of a cell: the submission ships no tests of its own
    tests_not_run,    // of a cell: the harness did not try them
    quick,            // graded over the cases of a quick run
    stolen_time,      // the host gave processors to others while it was timed
    few_repetitions,  // of a timed case
    par_not_faster,   // than naive: no scale
    naive_at_floor,   // likewise of modelled speeds
    wrong_when_timed,
    needs_gpu,  // cases were not run for that, and count as failed
    throttled,  // something held the GPU's clocks down while it was timed
  };
  Kind kind = Kind::other;
  std::string text;

  bool operator==(const Note&) const = default;
};

const char* code(Note::Kind);  // "stolen_time"
std::optional<Note::Kind> note_kind_from_code(const std::string&);

struct CellKey {
  std::string model, challenge, attempt;  // attempt "" when there is only one
  Device device = Device::cpu;
  auto operator<=>(const CellKey&) const = default;
};

// "model/challenge", with "/2" for attempt 2 and " (sim)" or " (cuda)" for another device than the
// CPU.
std::string to_string(const CellKey&);

// The target, after -march=, that is the machine which measures.
inline constexpr char kNativeTarget[] = "native";

// One cell as run, before grading. A stored cell can be graded again without running anything.
struct CellResult {
  CellKey key;
  std::string spec_hash;
  std::string isolation;  // "namespaces+seccomp", "landlock+seccomp" or "none"
  // That answer, naive and par were compiled for, after -march=. Of CUDA, which has none, as it is.
  std::string target = kNativeTarget;
  std::uint64_t seed = 0;
  std::string finished_at;  // UTC, ISO 8601
  BuildRecord build;
  std::vector<CaseResult> cases;
  std::vector<Mutant> mutants;     // the submission's own tests against naive, par, wrong examples
  std::optional<Note> tests_note;  // why `mutants` is empty
  // Faults of the harness after which a step was tried once more, the first first. The cell is
  // measured all the same, unless build.verdict says otherwise.
  std::vector<std::string> faults{};
  // Absent: not known. There is no answer, it is too large (code/facts.h), or this is of before
  // they were kept.
  std::optional<CodeFacts> code{};
  int revision = kMeasurementRevision;  // of the program that measured it
};

struct Interval {
  double low = 0, high = 0;
};

struct Dimension {
  std::string name;
  std::optional<double> points;  // absent: not run
  double max = 0;
  Interval interval;  // of the points, 95 %
  std::string why;    // one line: what was gained or lost
};

struct ShapeSpeed {
  std::string case_name;
  // The submission's speed / par's, 1 = as fast. Of a modelled speed without a par: / the floor's.
  double ratio_to_par = 0;
  Interval ratio_interval;  // bootstrap, 95 %
  double ratio_to_naive = 0;
  double points = 0;  // 0..1
  // The submission's speed / the floor's: 1 is as fast as the machine could at all. 0: not known.
  double ratio_to_floor = 0;
};

struct Score {
  Verdict verdict = Verdict::skipped;  // the worst over the cell
  std::optional<double> total;         // 0..100; absent when not run or the harness failed
  Interval interval;
  std::string letter;   // "A" .. "F", "" when there is no total
  bool capped = false;  // a failed core case
  std::vector<Dimension> dimensions;
  std::vector<ShapeSpeed> speeds;
  std::string modelled_on;  // the GPU whose model gave the speeds, see grade/gpu.h; empty: measured
  std::string gpu_sheet;    // SHA-256 of that GPU's data sheet; empty: measured, or not known
  std::vector<Note> flags;
};

// A real GPU.
struct GpuMachine {
  std::string name, driver;  // "NVIDIA H200"; the CUDA version of the driver, "13.0"
  std::string pci_bus_id{};  // "0000:3b:00.0", by which the management library knows it
  std::string compute_capability{};
  int multiprocessors = 0;
  double memory_bytes = 0;
  bool ecc = false;
  // Measured: bytes that a copy within its memory reads and writes in a second, and operations on
  // dense bf16 in a second, by mma.sync (device/gpu_speed.h).
  double copy_bytes_per_s = 0, bf16_flops_per_s = 0;
  std::string isolation{};  // of each process that drives it: "landlock+seccomp", "seccomp"

  // By the management library; absent is what it does not tell. Why there is none, "" if there is.
  std::string no_management{};
  std::optional<std::string> driver_release{};           // "580.95.05"
  std::optional<double> max_sm_mhz{}, max_memory_mhz{};  // of clocks
  std::optional<bool> mig{}, persistence{};
  GpuState state{};                      // right after its speeds were measured
  std::optional<int> other_processes{};  // that compute on it
};

struct Machine {
  std::string cpu, kernel, os, compiler;
  int cores = 0;
  std::int64_t memory_bytes = 0, l3_bytes = 0;
  double copy_bytes_per_s = 0, fma_flops_per_s = 0;  // measured at the start of the run
  std::optional<GpuMachine> gpu{};  // of a run on Device::cuda, measured at its start
};

// A graded cell with all that was measured. A run makes these; each is stored as a file of its own.
struct BoardEntry {
  CellResult cell;
  Score score;
  std::string assay_version, assay_commit;
  Machine machine;
  ModelInfo about;        // as model.json said when it was measured
  AttemptRecord attempt;  // likewise attempt.json
};

// The file of a BoardEntry. The hash tells whether it is still the one that a score came from.
struct EvidenceRef {
  std::string path;    // below the results folder
  std::string sha256;  // of its bytes
};

// A case that was run and did not pass, or that needs a GPU.
struct FailedCase {
  std::string name;
  Verdict verdict = Verdict::wrong_answer;

  bool operator==(const FailedCase&) const = default;
};

// A cell as the board shows it: everything but the measurements.
struct BoardRow {
  CellKey key;
  Score score;
  std::string reason;  // the one thing that explains the score best, see grade/reason.h
  // See failed_cases(). Absent: not known, the board is of before they were kept.
  std::optional<std::vector<FailedCase>> failed;
  std::string spec_hash, source_hash, isolation;
  std::string target = kNativeTarget;   // see CellResult
  int revision = kMeasurementRevision;  // see grade/currency.h; 0: of before there were any
  std::uint64_t seed = 0;
  std::string finished_at;  // UTC, ISO 8601
  double seconds = 0;       // inside the submission over all correctness cases, wall clock
  std::string assay_version, assay_commit;
  Machine machine;
  EvidenceRef evidence;
  AttemptRecord attempt;  // without what only attempt.json holds
  // Of the model when this was measured. Empty once it is on a board, which has it once: see
  // Scoreboard::models.
  ModelInfo about{};
};

struct Scoreboard {
  static constexpr int kSchema = 2;
  std::map<CellKey, BoardRow> entries;
  // Who the models are, of those of which something is said. As the newest measurement knew it, or
  // `assay report` since.
  std::map<std::string, ModelInfo> models;
};

// Whether it is no model but a reference, which is shown beside models and never ranked among them.
inline bool is_reference(const Scoreboard& board, const std::string& model) {
  const auto about = board.models.find(model);
  return about != board.models.end() && about->second.sample;
}

}  // namespace assay
