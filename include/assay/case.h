// What a spec.json says about one challenge, validated. Pure data.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// What a case is for. core, edge and trap cases make the correctness score (a failed core case caps
// the total); completeness cases belong to a capability; resource cases only measure; timed cases
// make the performance score and must be correct on every repetition.
enum class CaseGroup : std::uint8_t { core, edge, trap, completeness, resource, timed };

constexpr bool in_correctness(CaseGroup g) {
  return g == CaseGroup::core || g == CaseGroup::edge || g == CaseGroup::trap;
}

inline constexpr std::uint64_t kInstructionLimit = 1'000'000'000;
inline constexpr std::uint32_t kLastAllocation = 0xffffffff;

// Ties a time budget to the machine's speed: params["seconds"] becomes `times` what the challenge's
// par needs for the case `of`, measured right before the first such case of an answer, but stays at
// most what the spec says.
struct Pace {
  std::string of;  // a timed case; "" means no pace
  double times = 0;
};

struct CaseSpec {
  std::string name;
  CaseGroup group = CaseGroup::core;
  double weight = 1.0;     // within its group
  std::string capability;  // completeness cases: the item they belong to
  std::string catches;     // trap cases: the mistake, in words
  nlohmann::json params;   // shapes, distribution, tolerances: the challenge's own vocabulary
  std::int32_t expect_status = 0;  // ASSAY_*; when not ASSAY_OK the outputs must stay untouched
  bool deterministic = false;      // run twice on the same input; outputs must agree bitwise
  double time_limit_s = 5.0;       // wall clock of one call
  std::string uncaught_reason;     // trap cases that no shipped example fails: why
  // Run with nothing beside it, among the timed cases: its result depends on the time it gets.
  bool exclusive = false;
  Pace pace;  // of exclusive cases
  // Not empty: the case runs only when the user names a file, with --corpus for "corpus"; its path
  // then stands in params["file"]. Nothing is graded by such a case.
  std::string external;
  // Of timed cases: runs of par and the submission, more where the machine is busy.
  int repetitions = 11;
  int naive_repetitions = 3;  // of timed cases
  bool quick = false;         // part of a --quick run
  // On the simulated GPU: whether the case runs there, what replaces some of its params (a merge
  // patch, RFC 7396), and how many warp instructions its kernels may execute in one phase.
  bool on_simulator = true;
  nlohmann::json simulator_params = nlohmann::json::object();
  std::uint64_t instruction_limit = kInstructionLimit;
  // The params are drawn from the seed of the run when the case is planned; until then it has none.
  bool drawn = false;
  // Which of the case's allocations gives NULL, 0: none, kLastAllocation: the last, however many a
  // run before it counted. The call must do without it, or return ASSAY_ENOMEM and leave no trace.
  std::uint32_t failing_allocation = 0;
};

// One axis of a space of legal inputs. A choice is a literal, or a range of integers
// {"from": a, "to": b}; the simplest comes first.
struct Axis {
  std::string name;
  std::vector<nlohmann::json> choices;
  double usual = 0;  // share of the draws that take the first choice, whatever the others are
  std::vector<nlohmann::json> rare{};  // further ones of `assay fuzz`: what is optional, or large
  std::vector<nlohmann::json> simulated{};  // not empty: instead of both on the simulated GPU
};

// From which the cases random_1, random_2 ... of a grading are drawn.
struct RandomSpace {
  int cases = 24;
  double weight = 1.0;  // of each
  double time_limit_s = 5.0;
  std::uint64_t instruction_limit = kInstructionLimit;
  nlohmann::json base = nlohmann::json::object();  // what every draw has
  std::vector<Axis> axes;
};

// A measured quantity and the two values between which its points go from all to none. The scale is
// logarithmic when both are positive, else linear; full <= zero means smaller is better. A bound is
// always absolute: whoever takes more than is needed must not earn by it, as by a small difference
// between two problems.
struct ResourceRule {
  std::string name;
  // The cases that measure it. Of several the median counts; one that fails, or does not report the
  // metric, counts as `zero`, and where all fail there are no points.
  std::vector<std::string> case_names;
  std::string metric;  // a metric the checker or the harness reports for that case
  double full = 0, zero = 0;
  double weight = 1.0;
  std::string unit, why;
  // For answers on a GPU, where it needs others than a few threads do.
  struct Bounds {
    double full = 0, zero = 0;
    std::string why;
  };
  std::optional<Bounds> on_simulator{};
};

struct Capability {
  std::string name, summary;
  double weight = 1.0;
};

// Points per dimension; they sum to 100.
struct Weights {
  double correctness = 50, accuracy = 5, performance = 20, resources = 10, completeness = 10,
         tests = 5;
};

struct Limits {
  std::int64_t memory_bytes = 0;  // address space of the worker beyond the harness's own buffers
  // By which a process may grow in a resource case beyond what its context's allocator handed out:
  // for challenges that count the bytes held there. 0: any.
  std::int64_t heap_bytes = 0;
  int threads = 2;
  double load_time_s = 10;
  double build_time_s = 60;
};

struct ChallengeSpec {
  std::string name, title, difficulty, summary;
  std::vector<std::string> required_symbols, optional_symbols;
  Limits limits;
  Weights weights;
  std::map<CaseGroup, double> correctness_shares;  // core, edge, trap; sum 1
  double accuracy_full = 1, accuracy_zero = 4;     // error relative to ref32's
  std::vector<CaseSpec> cases;
  std::vector<ResourceRule> resources;
  std::vector<Capability> capabilities;
  std::optional<RandomSpace> random;
  std::string directory;  // challenges/<name>, absolute
  std::string hash;       // of spec.json's bytes
};

}  // namespace assay
