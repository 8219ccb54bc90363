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
  device_error,        // DE: a finding of the simulator's checks, such as a race; a fault that a
                       // real GPU reports; a rejected program; an input that was changed
  output_limit,        // OLE: too much on stdout or stderr
  wrong_answer,        // WA
  unsupported,         // returned ASSAY_ENOTSUP: costs only its capability while no case fails
  needs_gpu,           // not run: asks for what the simulator lacks
  skipped,             // not run for another reason; says why
  ok,
};

const char* code(Verdict);         // "WA"
const char* description(Verdict);  // "wrong answer"
std::optional<Verdict> verdict_from_code(const std::string&);

// Whether something was run, whatever its outcome: neither skipped nor in need of a GPU.
constexpr bool was_run(Verdict v) { return v != Verdict::skipped && v != Verdict::needs_gpu; }

// One paired repetition of a timed case: seconds of each implementation on the same input. Absent
// if that implementation was not run in this repetition.
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
  // Wall clock inside the submission, for correctness cases. On a simulated device it says nothing
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

// The verdict of a submission's own tests on an implementation that is known to be right or wrong.
enum class TestVerdict : std::uint8_t {
  accepted,
  rejected,      // the tests rejected it, or it crashed under them
  not_built,     // the tests, or the two together, do not compile
  not_run,       // the harness could not run them; says why
  inconsistent,  // accepted one of two equivalent twins and rejected the other
  house_fault,   // rejected an implementation held to be right, which the reference found wrong
                 // there
};

const char* code(TestVerdict);  // "accepted"
std::optional<TestVerdict> test_verdict_from_code(const std::string&);

struct Mutant {
  std::string subject;   // "naive", "par" or the name of a wrong or slow example
  bool correct = false;  // true of naive, par and slow examples, which tests must accept; they
                         // must reject the others
  TestVerdict verdict = TestVerdict::not_run;
  std::string reason{};  // what the tests returned, the signal, the compiler's log
  double seconds = 0;

  bool judged_rightly() const {
    return verdict == TestVerdict::house_fault ||
           verdict == (correct ? TestVerdict::accepted : TestVerdict::rejected);
  }
};

// A remark on a cell or its score. Code acts on the kind; people read the text.
struct Note {
  enum class Kind : std::uint8_t {
    other,
    no_tests,         // of a cell: the submission ships no tests of its own
    tests_not_run,    // of a cell: the harness did not try them
    quick,            // graded on the cases of a quick run
    stolen_time,      // the host gave processor time to others during timing
    few_repetitions,  // of a timed case
    par_not_faster,   // par is not faster than naive: no scale
    naive_at_floor,   // likewise for modelled speeds
    wrong_when_timed,
    needs_gpu,         // cases were not run for lack of a GPU, and count as failed
    throttled,         // something held the GPU's clocks down during timing
    clocks_unwatched,  // nothing tells whether something did
  };
  Kind kind = Kind::other;
  std::string text;

  bool operator==(const Note&) const = default;
};

const char* code(Note::Kind);  // "stolen_time"
std::optional<Note::Kind> note_kind_from_code(const std::string&);

struct CellKey {
  std::string model, challenge, attempt;  // attempt: "" when there is only one
  Device device = Device::cpu;
  auto operator<=>(const CellKey&) const = default;
};

// "model/challenge", with "/2" for attempt 2 and " (sim)" or " (cuda)" for a device other than the
// CPU.
std::string to_string(const CellKey&);

// The value of -march= that stands for the measuring machine.
inline constexpr char kNativeTarget[] = "native";

// One cell as run, before grading. A stored cell can be graded again without running anything.
struct CellResult {
  CellKey key;
  std::string spec_hash;
  std::string isolation;  // "namespaces+seccomp", "landlock+seccomp" or "none"
  // The -march= that the answer, naive and par were compiled for. Left unchanged for CUDA, which
  // has none.
  std::string target = kNativeTarget;
  std::uint64_t seed = 0;
  std::string finished_at;  // UTC, ISO 8601
  BuildRecord build;
  std::vector<CaseResult> cases;
  std::vector<Mutant> mutants;     // the submission's own tests against naive, par, wrong examples
  std::optional<Note> tests_note;  // why `mutants` is empty
  // Faults of the harness after which a step was retried, in order. The cell was measured anyway,
  // unless build.verdict says otherwise.
  std::vector<std::string> faults{};
  // Absent if unknown: there is no answer, it is too large (code/facts.h), or the result is older
  // than this field.
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
  // The submission's speed / par's, 1 = as fast. For a modelled speed without a par: / the floor's.
  double ratio_to_par = 0;
  Interval ratio_interval;  // bootstrap, 95 %
  double ratio_to_naive = 0;
  double points = 0;  // 0..1
  // The submission's speed / the floor's; 1: as fast as the machine could possibly be; 0: unknown.
  double ratio_to_floor = 0;
};

struct Score {
  Verdict verdict = Verdict::skipped;  // the worst of the cell
  std::optional<double> total;         // 0..100; absent when not run or the harness failed
  Interval interval;
  std::string letter;   // "A" .. "F", "" when there is no total
  bool capped = false;  // a failed core case
  std::vector<Dimension> dimensions;
  std::vector<ShapeSpeed> speeds;
  std::string modelled_on;  // the GPU whose model gave the speeds, see grade/gpu.h; "": measured
  std::string gpu_sheet;    // SHA-256 of that GPU's data sheet; "": measured, or unknown
  std::vector<Note> flags;
};

// A real GPU.
struct GpuMachine {
  std::string name, driver;  // "NVIDIA H200"; the CUDA version of the driver, "13.0"
  std::string pci_bus_id{};  // "0000:3b:00.0", how the management library identifies it
  std::string compute_capability{};
  int multiprocessors = 0;
  double memory_bytes = 0;
  bool ecc = false;
  // Measured: bytes per second that a copy within its memory reads and writes, and dense bf16
  // operations per second by mma.sync (device/gpu_speed.h).
  double copy_bytes_per_s = 0, bf16_flops_per_s = 0;
  std::string isolation{};  // of each process that drives it: "landlock+seccomp", "seccomp"

  // From the management library; absent if not reported. no_management: why there is no library, ""
  // if there is one.
  std::string no_management{};
  std::optional<std::string> driver_release{};           // "580.95.05"
  std::optional<double> max_sm_mhz{}, max_memory_mhz{};  // of clocks
  std::optional<bool> mig{}, persistence{};
  GpuState state{};                      // right after its speeds were measured
  std::optional<int> other_processes{};  // other processes that compute on it
};

struct Machine {
  std::string cpu, kernel, os, compiler;
  int cores = 0;
  std::int64_t memory_bytes = 0, l3_bytes = 0;
  double copy_bytes_per_s = 0, fma_flops_per_s = 0;  // measured at the start of the run
  std::optional<GpuMachine> gpu{};  // for runs on Device::cuda, measured at the start
};

// A graded cell with all its measurements. A run produces these; each is stored in its own file.
struct BoardEntry {
  CellResult cell;
  Score score;
  std::string assay_version, assay_commit;
  Machine machine;
  ModelInfo about;        // what model.json said when it was measured
  AttemptRecord attempt;  // likewise attempt.json
};

// The file of a BoardEntry. The hash tells whether it is still the file that the score came from.
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
  std::string reason;  // the one thing that best explains the score, see grade/reason.h
  // See failed_cases(). Absent if unknown: the board is older than this field.
  std::optional<std::vector<FailedCase>> failed;
  std::string spec_hash, source_hash, isolation;
  std::string target = kNativeTarget;   // see CellResult
  int revision = kMeasurementRevision;  // see grade/currency.h; 0: older than revisions
  std::uint64_t seed = 0;
  std::string finished_at;  // UTC, ISO 8601
  double seconds = 0;       // wall clock inside the submission over all correctness cases
  std::string assay_version, assay_commit;
  Machine machine;
  EvidenceRef evidence;
  AttemptRecord attempt;  // without the fields that only attempt.json holds
  // The model's details when this was measured. Empty on a board, which holds them once per model:
  // see Scoreboard::models.
  ModelInfo about{};
};

struct Scoreboard {
  static constexpr int kSchema = 2;
  std::map<CellKey, BoardRow> entries;
  // Details of the models that have any, as of the newest measurement or a later `assay report`.
  std::map<std::string, ModelInfo> models;
};

// Whether it is not a model but a reference, which is shown beside models and never ranked.
inline bool is_reference(const Scoreboard& board, const std::string& model) {
  const auto about = board.models.find(model);
  return about != board.models.end() && about->second.sample;
}

}  // namespace assay
